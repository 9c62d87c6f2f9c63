package envoyrules

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/parser"
)

// maxExpression bounds an expression in bytes.
const maxExpression = 4 << 10

// Functions of CEL that Envoy has, besides operators: of values, and of what stands before the dot.
var (
	functions = []string{"bool", "bytes", "double", "duration", "dyn", "int", "matches", "size", "timestamp", "type", "uint"}
	methods   = []string{
		"contains", "endsWith", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours", "getMilliseconds", "getMinutes",
		"getMonth", "getSeconds", "matches", "size", "startsWith",
	}
)

// expression is one of CEL, as Envoy takes them: with CEL's own functions alone, without messages
// and without loops.
func expression(s string) error {
	if len(s) > maxExpression {
		return errors.New("an expression of more than 4 KiB")
	}
	p, err := parser.NewParser(parser.Macros(parser.HasMacro))
	if err != nil {
		return err
	}
	parsed, errs := p.Parse(common.NewTextSource(s))
	if found := errs.GetErrors(); len(found) > 0 {
		first, _, _ := strings.Cut(found[0].Message, "\n")
		return fmt.Errorf("no expression: %s", first)
	}
	unknown := ""
	ast.PostOrderVisit(parsed.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch {
		case e.Kind() == ast.StructKind:
			unknown = e.AsStruct().TypeName()
		case e.Kind() == ast.CallKind && !callable(e.AsCall()):
			unknown = e.AsCall().FunctionName()
		}
	}))
	if unknown != "" {
		return fmt.Errorf("unknown function or type %q", tail(unknown))
	}
	return nil
}

func callable(c ast.CallExpr) bool {
	name := c.FunctionName()
	switch {
	case !c.IsMemberFunction():
		_, operator := operators.FindReverse(name)
		return operator || name == operators.Conditional || name == operators.Index || slices.Contains(functions, name)
	case c.Target().Kind() == ast.IdentKind && c.Target().AsIdent() == "re":
		return name == "extract"
	}
	return slices.Contains(methods, name)
}
