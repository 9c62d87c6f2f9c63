package rules

import (
	"regexp/syntax"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
)

// Codes about values.
const (
	badDuration = "COX2014"
	badNumber   = "COX2015"
	badRegex    = "COX2016"
	deprecated  = "IST0002"
)

// duration checks a duration, if it is given: at least a millisecond, and a multiple of one. With
// zero, 0 is allowed: it turns something off.
func (c *checker) duration(at path, d *durationpb.Duration, zero bool) {
	if d == nil || zero && d.AsDuration() == 0 {
		return
	}
	c.precise(at, d, time.Millisecond)
}

// precise checks that a duration is a multiple of a unit, and above 0.
func (c *checker) precise(at path, d *durationpb.Duration, unit time.Duration) {
	value := d.AsDuration()
	switch {
	case d.CheckValid() != nil:
		c.fail(badDuration, at, "duration is out of range")
	case value < time.Millisecond:
		c.fail(badDuration, at, "duration must be greater than 1ms, not %s", value)
	case value%unit != 0:
		c.fail(badDuration, at, "%s is too fine: only durations to %s precision are supported", value, unit)
	}
}

// percent checks a share.
func (c *checker) percent(at path, value float64) {
	if !(value >= 0 && value <= 100) {
		c.fail(badNumber, at, "percentage %v is not in range 0..100", value)
	}
}

// natural checks a number that counts something.
func (c *checker) natural(at path, value int32) {
	if value < 0 {
		c.fail(badNumber, at, "%d must be non-negative", value)
	}
}

// Bounds of regular expressions: the size of the program that RE2 makes of one, which proxies bound
// too, and of the text.
const (
	maxProgram = 32768
	maxPattern = 16 << 10
)

// regex checks an expression in RE2's syntax, which is Go's. It is parsed and its size is reckoned;
// nothing is compiled, so that the cost is that of the text.
func (c *checker) regex(at path, pattern string) {
	if why := regexFault(pattern); why != "" {
		c.fail(badRegex, at, "invalid regex %s: %s", quote(pattern), why).hint("proxies read RE2: no look-around, no back references")
	}
}

func regexFault(pattern string) string {
	if len(pattern) > maxPattern {
		return "it is longer than 16 KiB"
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	switch {
	case err != nil:
		return err.Error()
	case programSize(parsed) > maxProgram:
		return "its program is larger than proxies allow"
	}
	return ""
}

// programSize is about the number of instructions that an expression is compiled into; repetitions
// multiply.
func programSize(re *syntax.Regexp) int {
	size := 1
	for _, sub := range re.Sub {
		size += programSize(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		size += len(re.Rune)
	case syntax.OpRepeat:
		size *= max(re.Min, re.Max, 1)
	}
	return min(size, 1<<30)
}

// obsolete warns of a field that something else has replaced.
func (c *checker) obsolete(at path, instead string) {
	c.warn(deprecated, at, "Deprecated: this field may go").hint("%s", instead)
}
