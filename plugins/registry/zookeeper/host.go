package zookeeper

import (
	"fmt"
	"strings"
)

// igv names a service as Dubbo does: interface, group and version, the last two of which may be
// empty.
type igv struct{ name, group, version string }

// newIGV returns one; the version 0.0.0 is none.
// Source: Dubbo, "dubbo:service": the default version is 0.0.0.
func newIGV(name, group, version string) igv {
	if version == "0.0.0" {
		version = ""
	}
	return igv{name, group, version}
}

// String is Dubbo's own key of a service: GROUP/INTERFACE:VERSION.
func (k igv) String() string {
	text := k.name
	if k.group != "" {
		text = k.group + "/" + text
	}
	if k.version != "" {
		text += ":" + k.version
	}
	return text
}

// host is a service's host in the mesh, in lower case. What stands for {service} can be read back,
// but for case:
//
//	[version-VERSION.][group-GROUP.]INTERFACE
//
// The interface's labels are its own. In a version and a group, a dot between letters or digits is
// a dash. All else that is neither a letter nor a digit is --XX, its byte in hexadecimal digits. So
// no label of an interface has a single dash in it, and none can be taken for a version or a group.
func (c *Config) host(k igv) string {
	version, group := label(k.version), label(k.group)
	labels := strings.Split(k.name, ".")
	for i, l := range labels {
		labels[i] = escape(l, "")
	}
	name := strings.Join(labels, ".")
	service := name
	if k.group != "" {
		service = "group-" + group + "." + service
	}
	if k.version != "" {
		service = "version-" + version + "." + service
	}
	return strings.ToLower(strings.NewReplacer("{service}", service, "{interface}", name, "{group}",
		or(group, "default"), "{version}", or(version, "0-0-0")).Replace(c.Host))
}

// applicationHost is an application's host. Its dots and dashes stay.
func (c *Config) applicationHost(name string) string {
	return strings.ToLower(strings.ReplaceAll(c.ApplicationHost, "{application}", escape(name, ".-")))
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// label makes one label of a text: dots between letters or digits become dashes.
func label(text string) string {
	text = strings.ToLower(text)
	parts := strings.Split(text, ".")
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			if before := parts[i-1]; before != "" && part != "" && plain(before[len(before)-1]) && plain(part[0]) {
				b.WriteByte('-')
			} else {
				b.WriteString(hex('.'))
			}
		}
		b.WriteString(escape(part, ""))
	}
	return b.String()
}

// escape writes bytes that are neither letters nor digits, nor among others, as --XX.
func escape(text, others string) string {
	text = strings.ToLower(text)
	var b strings.Builder
	for _, c := range []byte(text) {
		if plain(c) || strings.IndexByte(others, c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteString(hex(c))
		}
	}
	return b.String()
}

func plain(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

func hex(c byte) string { return fmt.Sprintf("--%02x", c) }
