package wait

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main runs a package's tests, and lets it fail if a goroutine of them is left that doesn't end.
func Main(m goleak.TestingM, options ...goleak.Option) { goleak.VerifyTestMain(patient{m}, options...) }

// patient waits after the tests for longer than goleak does, which is less than half a second: what
// ends by itself may be kept from it that long.
type patient struct{ goleak.TestingM }

func (p patient) Run() int {
	code := p.TestingM.Run()
	if code == 0 {
		_ = Goroutines() // which goleak looks at once more, and says
	}
	return code
}

// Ended lets a test fail if goroutines are left that don't end; options say of which that is known.
func Ended(t testing.TB, options ...goleak.Option) {
	t.Helper()
	if err := Goroutines(options...); err != nil {
		t.Error(err)
	}
}

// Goroutines waits until none is left that a test has begun, and says which are left after that.
func Goroutines(options ...goleak.Option) (err error) {
	for end := time.Now().Add(30 * time.Second); ; {
		if err = goleak.Find(options...); err == nil || time.Now().After(end) {
			return err
		}
	}
}
