package settings

import (
	"fmt"
	"strings"
)

// registry reports what is wrong with registries. Of those that no built-in set has it says what to
// write in plugins.yaml.
func (c Cluster) registry() error {
	names := strings.FieldsFunc(c.Registries, func(r rune) bool { return r == ',' || r == ' ' })
	var entries, strange []string
	for _, name := range names {
		switch entry, ok := entryOf(name); {
		case ok:
			entries = append(entries, entry)
		case !strings.EqualFold(name, "kubernetes"):
			strange = append(strange, name)
		}
	}
	const how = "write into a copy of the set that runs otherwise (plugins.yaml, deploy/kubernetes/plugins.yaml), with " +
		"your servers' addresses, and start with --plugins FILE:"
	switch {
	case len(names) > 1 && len(entries) > 0 && len(strange) == 0:
		return fmt.Errorf("registries: %q are several, and a built-in set has one; %s\n  - %s", c.Registries, how, strings.Join(entries, "\n  - "))
	case len(names) == 1 && len(entries) == 1 && !inSet(names[0]):
		return fmt.Errorf("registries: no built-in set has %s; %s\n  - %s", names[0], how, entries[0])
	}
	return oneOf("registries", c.Registries, "auto", "Kubernetes", "Consul", "Eureka", "")
}

// inSet reports whether a registry is in a built-in set, however its name is written.
func inSet(name string) bool {
	return strings.EqualFold(name, "consul") || strings.EqualFold(name, "eureka")
}

// entryOf is a registry's entry in plugins.yaml, with the usual address.
func entryOf(name string) (entry string, ok bool) {
	name = strings.ToLower(name)
	config := ""
	switch name {
	case "consul":
		config = `address: "http://127.0.0.1:8500"`
	case "etcd":
		config = `endpoints: ["http://127.0.0.1:2379"]`
	case "eureka":
		config = `servers: ["http://127.0.0.1:8761/eureka"]`
	case "nacos":
		config = `servers: ["127.0.0.1:8848"]`
	case "zookeeper":
		config = `servers: ["127.0.0.1:2181"]`
	default:
		return "", false
	}
	return fmt.Sprintf("{name: %[1]s, kind: registry, builtin: registry/%[1]s, config: {%[2]s}}", name, config), true
}
