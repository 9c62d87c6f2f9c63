package host

import (
	"fmt"
	"os"
)

// Outdated says that the file of the program that runs built-ins is another one by now: they, and
// the core, go on as what runs. Empty: it isn't, or nobody knows.
func (h *Host) Outdated() string {
	if h.launcher.self == nil {
		return ""
	}
	runs, err := h.launcher.self.Stat()
	if err != nil {
		return ""
	}
	switch is, err := os.Stat(h.cfg.Exe); {
	case err != nil:
		return fmt.Sprintf("%s is gone; built-ins and modules go on being started from what runs. To upgrade, put the new program there and restart the core",
			h.cfg.Exe)
	case !os.SameFile(runs, is):
		return fmt.Sprintf("%s is another program than the one that runs, from which built-ins and modules go on being started. To upgrade, restart the core",
			h.cfg.Exe)
	}
	return ""
}
