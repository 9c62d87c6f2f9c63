package render

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"text/template"
	"text/template/parse"
)

// Call is a place of a template where it asks for what is around the process.
type Call struct {
	// Template is its name, Function env, expandenv or getHostByName.
	Template, Function string
	// Names are the variables, or the host, as far as they are written there; none: the template
	// makes them as it runs.
	Names []string
}

// outward are the functions that see what is allowed (Names).
var outward = []string{"env", "expandenv", "getHostByName"}

// Calls are all such places, in the order of the templates' names.
func (s *Settings) Calls() (all []Call) {
	for _, name := range s.Templates() {
		t, ok := s.templates[name].(*text)
		if !ok {
			continue // built in
		}
		c := calls{name: name}
		parts := t.of.Templates()
		slices.SortFunc(parts, func(a, b *template.Template) int { return cmp.Compare(a.Name(), b.Name()) })
		for _, part := range parts {
			if part.Tree != nil {
				c.list(part.Root)
			}
		}
		all = append(all, c.all...)
	}
	return all
}

// calls looks for them in a template.
type calls struct {
	name string
	all  []Call
}

func (c *calls) list(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			c.pipe(n.Pipe)
		case *parse.TemplateNode:
			c.pipe(n.Pipe)
		case *parse.IfNode:
			c.branch(&n.BranchNode)
		case *parse.RangeNode:
			c.branch(&n.BranchNode)
		case *parse.WithNode:
			c.branch(&n.BranchNode)
		}
	}
}

func (c *calls) branch(b *parse.BranchNode) {
	c.pipe(b.Pipe)
	c.list(b.List)
	c.list(b.ElseList)
}

func (c *calls) pipe(p *parse.PipeNode) {
	if p == nil {
		return
	}
	var before *parse.CommandNode
	for _, command := range p.Cmds {
		for _, arg := range command.Args {
			if chain, ok := arg.(*parse.ChainNode); ok {
				arg = chain.Node
			}
			if inner, ok := arg.(*parse.PipeNode); ok {
				c.pipe(inner)
			}
		}
		if f, ok := command.Args[0].(*parse.IdentifierNode); ok && slices.Contains(outward, f.Ident) {
			if names, known := written(f.Ident, command, before); !known || len(names) > 0 {
				c.all = append(c.all, Call{c.name, f.Ident, names})
			}
		}
		before = command
	}
}

// written are the names that a call says, by its first argument, or by what is piped into it, and
// whether they are written there.
func written(function string, call, before *parse.CommandNode) (names []string, known bool) {
	args := call.Args[1:]
	if len(args) == 0 && before != nil && len(before.Args) == 1 {
		args = before.Args
	}
	if len(args) == 0 {
		return nil, false
	}
	text, ok := args[0].(*parse.StringNode)
	if !ok {
		return nil, false
	}
	if function != "expandenv" {
		return []string{text.Text}, true
	}
	all := map[string]bool{}
	os.Expand(text.Text, func(name string) string { all[name] = true; return "" })
	return slices.Sorted(maps.Keys(all)), true
}
