package plan

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// mostValue is how much of a value is printed, in bytes; wide, yaml and json have all of it.
const mostValue = 160

// mostProxies is how many proxies of a group are named; wide names all.
const mostProxies = 3

// Write prints a plan for people, wide: with all values and names whole, or as markdown.
func (p *Plan) Write(w io.Writer, markdown, wide bool) error {
	text := p.text(wide)
	if markdown {
		text = p.markdown()
	}
	_, err := io.WriteString(w, text)
	return err
}

func (p *Plan) summary() string {
	if p.Empty() {
		return fmt.Sprintf("nothing would change for %s", count(p.Proxies, "proxy", "proxies"))
	}
	return fmt.Sprintf("%d of %s would get something else", p.Changed, count(p.Proxies, "proxy", "proxies"))
}

func (p *Plan) text(wide bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s -> %s: %s\n", p.Against, p.New, p.summary())
	for _, line := range append(p.wrong(), p.left()...) {
		fmt.Fprintln(&b, line)
	}
	WriteGroups(&b, p.Groups, wide)
	return b.String()
}

// markdown is for a comment on a change: groups fold.
func (p *Plan) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### What proxies would get\n\n`%s` → `%s`: %s\n", p.Against, p.New, p.summary())
	if wrong := append(p.wrong(), p.left()...); len(wrong) > 0 {
		fmt.Fprintf(&b, "\n%s", fenced("text", wrong))
	}
	for _, g := range p.Groups {
		fmt.Fprintf(&b, "\n<details><summary>%s, %s</summary>\n\n%s\n</details>\n", kind(g.Type), g.who(false), fenced("diff", g.lines(false)))
	}
	return b.String()
}

// fenced is a block of code, whose fence is longer than any in it.
func fenced(language string, lines []string) string {
	text, fence := strings.Join(lines, "\n"), "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + language + "\n" + text + "\n" + fence + "\n"
}

// wrong has a line for each fault, and says what is served in the place of what is refused.
func (p *Plan) wrong() (lines []string) {
	refused := false
	for _, o := range p.Faults {
		refused = refused || o.State == "refused"
		for _, f := range o.Faults {
			line := fmt.Sprintf("%s:%d:%d: %s: ", f.File, f.Line, f.Column, f.Severity)
			if f.Field != "" {
				line += f.Field + ": "
			}
			if line += f.Message; f.Hint != "" {
				line += "; " + f.Hint
			}
			if f.Code != "" {
				line += " (" + f.Code + ")"
			}
			lines = append(lines, line)
		}
	}
	if refused {
		lines = append(lines, "what is refused is not served here, as by a control plane that starts with it; one that runs serves its last good version on")
	}
	return lines
}

// left says what is not compared.
func (p *Plan) left() (lines []string) {
	if len(p.Left) > 0 {
		var names []string
		for _, typeURL := range p.Left {
			names = append(names, kind(typeURL))
		}
		lines = append(lines, "not compared: "+strings.Join(names, ", "))
	}
	if p.Gone > 0 {
		lines = append(lines, count(p.Gone, "proxy", "proxies")+" left meanwhile, and can't be compared")
	}
	return lines
}

func (g *Group) who(all bool) string {
	named := g.Proxies
	if !all {
		named = named[:min(len(named), mostProxies)]
	}
	text := count(len(g.Proxies), "proxy", "proxies") + ": " + strings.Join(named, ", ")
	if rest := len(g.Proxies) - len(named); rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}

func (g *Group) lines(whole bool) (lines []string) {
	for _, name := range g.Added {
		lines = append(lines, "+ "+name)
	}
	for _, name := range g.Removed {
		lines = append(lines, "- "+name)
	}
	for _, r := range g.Changed {
		lines = append(lines, "~ "+r.Name)
		for _, c := range r.Changes {
			if bytes.Equal(c.After, changed) {
				lines = append(lines, "~   "+strings.TrimPrefix(c.Path+": ", ": ")+"(masked) changed")
				continue
			}
			if c.Before != nil {
				lines = append(lines, "-   "+c.Path+": "+cut(c.Before, whole))
			}
			if c.After != nil {
				lines = append(lines, "+   "+c.Path+": "+cut(c.After, whole))
			}
		}
	}
	return lines
}

func cut(value []byte, whole bool) string {
	if whole || len(value) <= mostValue {
		return string(value)
	}
	n := mostValue
	for !utf8.RuneStart(value[n]) {
		n--
	}
	return fmt.Sprintf("%s… (%d bytes; -o wide has all)", value[:n], len(value))
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
