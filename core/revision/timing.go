package revision

import (
	"errors"
	"fmt"
	"time"

	"github.com/coxswain-mesh/coxswain/internal/setting"
)

// Timing is when changes become a revision, and how long one may take. Each field is a setting,
// which its tags declare (internal/setting).
type Timing struct {
	DebounceAfter     time.Duration `setting:"debounceAfter" default:"100ms" above:"0" help:"commit changes after this time without another one"`
	DebounceMax       time.Duration `setting:"debounceMax" default:"10s" above:"0" help:"commit changes after this time at the latest"`
	DebounceEndpoints bool          `setting:"debounceEndpoints" help:"let changes of endpoints alone wait as well"`
	// EndpointPatience is how long endpoints wait before they overtake a revision.
	EndpointPatience time.Duration `setting:"endpointPatience" default:"200ms" above:"0" help:"how long endpoints wait for a revision before they overtake it"`
	// EndpointPause is multiplied by the number of connections: see Pacer.
	EndpointPause time.Duration `setting:"endpointPause" default:"4ms" zero:"none" help:"between revisions of endpoints alone, for each proxy; at most 2s"`
	HoldMax       time.Duration `setting:"holdMax" default:"10s" above:"0" help:"how long a revision waits for a plugin; then its last rows count"`
}

// Timings returns the settings as they are unless somebody says otherwise.
func Timings() Timing { return setting.Default[Timing]() }

// Check returns what can't be, in the words of the settings.
func (t Timing) Check() error {
	err := setting.Check(t)
	if t.DebounceMax < t.DebounceAfter {
		err = errors.Join(err, fmt.Errorf("debounceMax: %v is less than debounceAfter, %v", t.DebounceMax, t.DebounceAfter))
	}
	return err
}
