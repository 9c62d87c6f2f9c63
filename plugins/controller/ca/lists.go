package ca

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/controller/ca/authority"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// listsFile is the file of certificate revocation lists beside a CA that is plugged in.
// Source: Istio, "Plug in CA Certificates".
const listsFile = "ca-crl.pem"

// lists reads the revocation lists beside a CA that is plugged in; nil: there are none.
func (p plugged) lists(a *authority.Authority) (*authority.Lists, error) {
	text, err := p.part(listsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		var l *authority.Lists
		if l, err = a.Lists(text); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", filepath.Join(string(p), listsFile), err)
}

// revoked returns the lists that count beside a CA that is plugged in: what can't be read, or has
// ended, takes nothing from those that counted before.
func (l *life) revoked(a *authority.Authority, now time.Time) *authority.Lists {
	next, err := l.plugged.lists(a)
	if err == nil && (!next.Ended(now) || l.crl.lists == nil || next.Same(l.crl.lists)) { // what was revoked is so still
		l.crl.lists = next
	}
	wrong := ""
	if err != nil {
		wrong = err.Error()
	} else if why := next.Wrong(now); why != "" {
		wrong = filepath.Join(string(l.plugged), listsFile) + ": " + why
	}
	if wrong != "" && wrong != l.crl.wrong {
		l.out.Log(sdk.Error, "revocation lists can't be handed out as they are; those that could be read last count", "error", wrong)
	}
	l.crl.wrong = wrong
	return l.crl.lists
}

// crl is what is known of revocation lists.
type crl struct {
	lists *authority.Lists
	wrong string
}
