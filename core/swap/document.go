package swap

import (
	"bytes"
	"os"

	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// read returns the file as it is now, or as it was applied last where it can't be read.
func (s *Swapper) read() (*manifest.Set, []byte) {
	if s.cfg.File == "" {
		return s.file, s.text
	}
	text, err := os.ReadFile(s.cfg.File)
	if err == nil && bytes.Equal(text, s.text) {
		s.blame(nil)
		return s.file, s.text
	}
	var set *manifest.Set
	if err == nil {
		set, err = s.cfg.Parse(text)
	}
	s.blame(err)
	if err != nil {
		return s.file, s.text
	}
	return set, text
}

// blame keeps, and says once, what is wrong with the file; and once that nothing is any more.
func (s *Swapper) blame(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	s.mu.Lock()
	new := s.fault != text
	s.fault = text
	s.mu.Unlock()
	switch {
	case new && err != nil:
		s.cfg.Log.Error("plugins.yaml can't be followed; nothing was changed", "error", text)
	case new:
		s.cfg.Log.Info("plugins.yaml is followed again")
	}
}

// textOfLocked is the file's text, if an entry stands in it as it is.
func (s *Swapper) textOfLocked(e *manifest.Entry) []byte {
	if in, _ := s.file.Get(e.Name); in != nil && manifest.Same(in, e) {
		return s.text
	}
	return nil
}
