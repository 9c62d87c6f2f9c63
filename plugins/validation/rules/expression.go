package rules

import (
	"strings"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/parser"
)

// expression checks that a text is a CEL expression. What it says of requests is the proxy's to
// judge. The parser bounds depth and size.
func (c *checker) expression(at path, text string) {
	p, err := parser.NewParser(parser.Macros(parser.AllMacros...))
	if err != nil {
		c.fail(badExpression, at, "invalid filter expression: %v", err)
		return
	}
	if _, errs := p.Parse(common.NewTextSource(text)); len(errs.GetErrors()) > 0 {
		first, _, _ := strings.Cut(errs.GetErrors()[0].Message, "\n")
		c.fail(badExpression, at, "invalid filter expression %s: %s", quote(text), first).hint("write CEL, such as response.code >= 400")
	}
}
