package mesh

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// setting is one of the two files, and the row that it makes.
type setting struct {
	// path is empty where there is no file.
	path string
	// table is the row's table, and its key.
	table string
	// kind is MeshConfig or MeshNetworks.
	kind  string
	check func(finding.Resource) []finding.Finding

	// row is the last good version.
	row    *sdk.Row
	faults []kinds.Fault
	// gone is since when a file that had a meaning is empty or missing: its writer may just have begun. missed: that has lasted for too long.
	gone   time.Time
	missed bool
	// filled says that the file had a meaning when it was read last.
	filled bool
}

// goneFor is how many settle times a file must be empty or missing for that to be a fault.
const goneFor = 50

// maxFile is the size beyond which a file is refused.
const maxFile = 1 << 20

// look reads the file. What a file said stays when it is suddenly empty or missing, which is a fault if that lasts for longer than patience: the disk was
// full, or somebody slipped. Who means the defaults can say so.
func (s *setting) look(now time.Time, patience time.Duration) {
	content, err := s.content()
	switch {
	case err != nil:
		s.faults = []kinds.Fault{{File: s.path, Line: 1, Column: 1, Code: kinds.CodeFile, Message: fmt.Sprintf("cannot be read: %v", err)}}
	case len(bytes.Trim(content, " \t\r\n\x00")) == 0 && s.filled: // some file systems leave zeros where a write was cut off
		s.miss(now, patience, content != nil)
	default:
		s.take(content)
	}
	if s.row == nil {
		s.row = s.defaults()
	}
}

// defaults returns the row that counts where the first version of the file is a bad one.
func (s *setting) defaults() *sdk.Row {
	nothing := setting{table: s.table, kind: s.kind, check: s.check}
	nothing.take(nil)
	return nothing.row
}

// miss notes that a file that had a meaning is empty or missing.
func (s *setting) miss(now time.Time, patience time.Duration, there bool) {
	if s.gone.IsZero() {
		s.gone = now
	}
	if s.missed = now.Sub(s.gone) >= patience; s.missed {
		is := "is gone"
		if there {
			is = "is empty, and was not"
		}
		s.faults = []kinds.Fault{{File: s.path, Line: 1, Column: 1, Code: kinds.CodeFile, Message: fmt.Sprintf("it %s; write it again, or {} in it if the defaults are meant", is)}}
	}
}

// content returns what the file holds; nil where there is no file.
func (s *setting) content() ([]byte, error) {
	if s.path == "" {
		return nil, nil
	}
	info, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() && !info.IsDir():
		return nil, nil
	case err == nil && info.Size() > maxFile:
		err = fmt.Errorf("it has %d bytes, more than %d", info.Size(), maxFile)
	}
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// take makes the row of what the file says, or notes what is wrong with it.
func (s *setting) take(content []byte) {
	s.gone, s.missed, s.filled = time.Time{}, false, len(content) > 0
	message, faults := Read(s.kind, s.path, content, s.check)
	s.faults = faults
	if kinds.Refuses(faults) {
		return
	}
	payload, err := kinds.Encode(message)
	if err != nil {
		s.faults = []kinds.Fault{{File: s.path, Line: 1, Column: 1, Code: kinds.CodeFile, Message: err.Error()}}
		return
	}
	s.row = &sdk.Row{Key: s.table, Source: s.source(), Payload: payload}
}

// source says where the row comes from.
func (s *setting) source() string {
	if !s.filled {
		return "defaults"
	}
	return kinds.Source(s.path, 1, 1)
}
