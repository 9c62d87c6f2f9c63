package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
)

// inPlace is the name of a function that is put behind all that a template prints in place.
const inPlace = "__in_place"

// writers make text of several lines that fits where it stands.
var writers = []string{"toYaml", "indent", "nindent"}

// breaks are the ends of lines that YAML knows.
const breaks = "\n\r\u0085\u2028\u2029"

// oneLine refuses what has several lines where a template puts a value into a line of YAML: who
// writes annotations, or settings into one of them, would write the pod, too, with containers that
// nobody looks for there.
// Source: Istio, https://github.com/istio/istio/issues/58889
func oneLine(what string, v any) (any, error) {
	if s := fmt.Sprint(v); strings.ContainsAny(strings.TrimRight(s, breaks), breaks) {
		return nil, fmt.Errorf("what {{%s}} makes has several lines; it stands in one", what)
	}
	return v, nil
}

// hold puts it behind what a template prints, and writers don't.
func hold(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 && !writes(n.Pipe) {
				n.Pipe.Cmds = append(n.Pipe.Cmds, inPlaceOf(n.Pipe))
			}
		case *parse.RangeNode:
			hold(n.List)
			hold(n.ElseList)
		case *parse.IfNode:
			hold(n.List)
			hold(n.ElseList)
		case *parse.WithNode:
			hold(n.List)
			hold(n.ElseList)
		}
	}
}

// writes reports whether a writer makes what a pipeline ends with.
func writes(p *parse.PipeNode) bool {
	last, ok := p.Cmds[len(p.Cmds)-1].Args[0].(*parse.IdentifierNode)
	return ok && slices.Contains(writers, last.Ident)
}

func inPlaceOf(p *parse.PipeNode) *parse.CommandNode {
	source := "{{0 | " + inPlace + " " + strconv.Quote(p.String()) + "}}"
	made := template.Must(template.New("").Funcs(template.FuncMap{inPlace: oneLine}).Parse(source))
	return made.Root.Nodes[0].(*parse.ActionNode).Pipe.Cmds[1]
}
