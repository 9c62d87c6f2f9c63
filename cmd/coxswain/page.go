package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// addrVariable says where commands find a control plane.
const addrVariable = "COXSWAIN_ADDR"

// listing makes c a command that gets a list from a page and shows it as a table, or as the page
// has it.
func listing[T any](p *program, c *cobra.Command, page string, table func(io.Writer, []T)) *cobra.Command {
	var addr string
	var format string
	fromFlag(c, &addr)
	addrFlag(p, c, &addr)
	formatFlag(c, &format)
	c.Args = noArgs
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkFormat(format); err != nil {
			return err
		}
		raw, err := get(c.Context(), addr, page)
		if err != nil {
			return orElsewhere(c.Context(), p, err)
		}
		if text, err := asText(raw, format); err != nil || text != nil {
			if err == nil {
				_, err = p.out.Write(text)
			}
			return err
		}
		var list []T
		if err := json.Unmarshal(raw, &list); err != nil {
			return fmt.Errorf("%s%s: %w; is it a control plane of this version?", base(addr), page, err)
		}
		w := tabwriter.NewWriter(p.out, 0, 8, 2, ' ', 0)
		table(w, list)
		return w.Flush()
	}
	return c
}

func get(ctx context.Context, addr, page string) ([]byte, error) {
	if strings.HasPrefix(addr, archived) {
		return getArchived(addr, page)
	}
	code, raw, err := call(ctx, http.MethodGet, addr, page, nil)
	if err != nil {
		return nil, err
	}
	if code == http.StatusNotFound && strings.Contains(page, "?") && !bytes.HasPrefix(raw, []byte("404 ")) { // the page is there, and says what is not
		return nil, errors.New(strings.TrimSpace(string(raw)))
	}
	if code != http.StatusOK {
		return nil, fmt.Errorf("%s%s: %d %s", base(addr), page, code, strings.TrimSpace(string(raw)))
	}
	return raw, nil
}

func (p *program) variable(name string) string {
	for _, e := range p.environ {
		if key, value, _ := strings.Cut(e, "="); key == name {
			return value
		}
	}
	return ""
}

// age is how long ago something was, as people say it.
func age(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	d := max(0, time.Since(at))
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// size in the unit that people read.
func size(bytes uint64) string {
	if bytes == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}
