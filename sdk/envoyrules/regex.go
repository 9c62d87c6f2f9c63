package envoyrules

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode"
)

// Bounds of regular expressions: the text in bytes, and the program that RE2 makes of it. The
// second is what Istio's bootstraps, and ours, allow (re2.max_program_size.error_level); Envoy's
// default is 100.
const (
	MaxPattern = 16 << 10
	MaxProgram = 32768
)

var errLargeProgram = fmt.Errorf("its program is larger than proxies allow (%d instructions)", MaxProgram)

// Regex says why Envoy would refuse an expression; nil: it wouldn't. Go reads the same syntax (RE2)
// but for what Envoy's RE2, which reads bytes, doesn't know: characters beyond \x{ff}, and newer
// names of classes; and for \C, which Go lacks. The expression is parsed and its size is reckoned;
// nothing is compiled, so that the cost is that of the text.
func Regex(pattern string) error {
	_, err := RegexSize(pattern)
	return err
}

// RegexSize is about the number of instructions of an expression's program, if Envoy would take it.
func RegexSize(pattern string) (int, error) {
	if len(pattern) > MaxPattern {
		return 0, errors.New("it is longer than 16 KiB")
	}
	size, err := reckon(pattern)
	if err != nil {
		return 0, err
	}
	if err := escapes(pattern); err != nil {
		return 0, err
	}
	if size > MaxProgram {
		return 0, errLargeProgram
	}
	return size, nil
}

// reckon is about the size of an expression's program.
func reckon(pattern string) (int, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	return overhead + programSize(parsed), nil
}

// overhead is what each program has besides.
const overhead = 5

// escapes looks for those that Go reads and Envoy doesn't, in an expression that Go has parsed.
func escapes(pattern string) error {
	for rest := pattern; ; {
		_, after, found := strings.Cut(rest, `\`)
		if !found || after == "" {
			return nil
		}
		rest = after[1:]
		name, braced := "", strings.HasPrefix(rest, "{")
		if braced {
			name, _, _ = strings.Cut(rest[1:], "}")
		}
		switch after[0] {
		case 'Q':
			_, rest, _ = strings.Cut(rest, `\E`)
		case 'x':
			if n, err := strconv.ParseUint(name, 16, 32); braced && (err != nil || n > 0xff) {
				return fmt.Errorf("invalid escape sequence: \\x{%s}: proxies know no character above \\x{ff}", name)
			}
		case 'p', 'P':
			if braced && !knownClass(strings.TrimPrefix(name, "^")) {
				return fmt.Errorf("invalid character class range: \\%c{%s}", after[0], name)
			}
		}
	}
}

// knownClass reports whether RE2 has a Unicode class of a name.
func knownClass(name string) bool {
	_, script := unicode.Scripts[name]
	_, category := unicode.Categories[name]
	return name == "Any" || script || category && name != "Cn" && name != "LC"
}

// programSize is about the number of instructions that RE2 compiles an expression into;
// repetitions multiply.
func programSize(re *syntax.Regexp) int {
	size := 0
	for _, sub := range re.Sub {
		size = min(size+programSize(sub), 1<<30)
	}
	switch re.Op {
	case syntax.OpLiteral:
		size += len(string(re.Rune))
	case syntax.OpCharClass:
		size += byteRanges(re.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpCapture, syntax.OpStar, syntax.OpPlus, syntax.OpAlternate:
		size += 2
	case syntax.OpRepeat:
		size = repeated(size, re)
	default:
		size++
	}
	return size
}

// repeated is the size of an expression of a size that stands there from Min to Max times; Max is
// -1 without a bound.
func repeated(size int, re *syntax.Regexp) int {
	return min(size*max(re.Min, 1)+max(0, re.Max-re.Min)*(size+1)+1, 1<<30)
}

// byteRanges are those of a class, pairs of characters, among bytes.
func byteRanges(class []rune) int {
	n := 1
	for i := 0; i+1 < len(class) && class[i] <= 0xff; i += 2 {
		n++
	}
	return n
}
