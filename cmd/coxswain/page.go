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

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
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
		if text, err := show.Raw(raw, format); err != nil || text != nil {
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
	ofWhatIsAsked := code == http.StatusNotFound && !bytes.HasPrefix(raw, []byte("404 ")) || code == http.StatusBadRequest
	if ofWhatIsAsked && strings.Contains(page, "?") { // the page is there, and says what is not
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
