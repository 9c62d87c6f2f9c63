package rules

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/coxswain-mesh/coxswain/sdk/envoyrules"
)

// Codes about values.
const (
	badDuration = "COX2014"
	badNumber   = "COX2015"
	badRegex    = "COX2016"
	// Deprecated is of a field that another one has replaced, or that is ignored.
	Deprecated = "IST0002"
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
	case d.CheckValid() != nil || value >= envoyrules.MaxDuration:
		c.fail(badDuration, at, "duration is out of range: proxies know none of %d seconds or more", int64(envoyrules.MaxDuration/time.Second))
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

// regex checks an expression in RE2's syntax.
func (c *checker) regex(at path, pattern string) {
	if why := regexFault(pattern); why != "" {
		c.fail(badRegex, at, "invalid regex %s: %s", quote(pattern), why).hint("proxies read RE2: no look-around, no back references")
	}
}

func regexFault(pattern string) string {
	if err := envoyrules.Regex(pattern); err != nil {
		return err.Error()
	}
	return ""
}

// obsolete warns of a field that something else has replaced.
func (c *checker) obsolete(at path, instead string) {
	c.warn(Deprecated, at, "Deprecated: this field may go").hint("%s", instead)
}
