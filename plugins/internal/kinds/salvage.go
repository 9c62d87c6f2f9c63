package kinds

import (
	"cmp"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
)

// Lines that name an object, in text that does not parse.
var (
	versionLine     = regexp.MustCompile(`(?m)^apiVersion:[ \t]*["']?([A-Za-z0-9./-]+)`)
	kindLine        = regexp.MustCompile(`(?m)^kind:[ \t]*["']?([A-Za-z]+)`)
	metadataBlock   = regexp.MustCompile(`(?m)^metadata:[ \t]*\r?\n((?:[ \t]+.*(?:\r?\n|$)|[ \t]*\r?\n)+)`)
	inlineName      = regexp.MustCompile(`(?m)^metadata:[ \t]*\{(?:[^}\n]*[ ,])?name:[ \t]*["']?([a-z0-9.-]+)`)
	inlineNamespace = regexp.MustCompile(`(?m)^metadata:[ \t]*\{(?:[^}\n]*[ ,])?namespace:[ \t]*["']?([a-z0-9-]+)`)
	nameLine        = regexp.MustCompile(`(?m)^ {1,4}name:[ \t]*["']?([a-z0-9.-]+)["']?[ \t]*(?:#.*)?\r?$`)
	namespaceLine   = regexp.MustCompile(`(?m)^ {1,4}namespace:[ \t]*["']?([a-z0-9-]+)["']?[ \t]*(?:#.*)?\r?$`)
)

// unparsed is the document of a text that is no YAML. Its name is read off the lines that usually
// hold it, so that the right object's last good version is kept and people are told which one it
// is.
func (r Reader) unparsed(file string, chunk protoyaml.Chunk, fault protoyaml.Fault) Document {
	d := Document{Line: chunk.Before + 1, Column: 1}
	f := NewFault(file, fault)
	group, _, _ := strings.Cut(first(versionLine, chunk.Text), "/")
	f.Kind = first(kindLine, chunk.Text)
	block := []byte(first(metadataBlock, chunk.Text))
	kind, ok := Lookup(group + "/" + f.Kind)
	if isSecret(f.Kind) {
		f.Message = "not YAML" // the reason may quote it
		if r.Secrets && group == "v1" {
			kind.Table, ok = secrets.Object{Kind: f.Kind}.Table(), true
		}
	}
	if of, known := otherKind(group, f.Kind); known && r.Gateways {
		kind.Table, ok = of.Table, true
	}
	if ok && utf8.Valid(chunk.Text) { // where bytes are broken, half of a name is another name
		d.Table, d.Name = kind.Table, cmp.Or(first(nameLine, block), first(inlineName, chunk.Text))
	}
	if d.Name != "" {
		d.Namespace = cmp.Or(first(namespaceLine, block), first(inlineNamespace, chunk.Text), DefaultNamespace)
	}
	f.Namespace, f.Name = d.Namespace, d.Name
	d.Faults = []Fault{f}
	return d
}

func first(form *regexp.Regexp, text []byte) string {
	if m := form.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return ""
}
