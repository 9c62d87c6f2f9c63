// Package mask keeps what the core knows to be secret out of every text that leaves it: plugins
// repeat their configs in errors and on standard error.
package mask

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coxswain-mesh/coxswain/sdk/redact"
)

// Word takes a secret's place.
const Word = "[secret]"

const (
	// shortest is how long a secret must be: a shorter one would be found in every other word.
	shortest = 4
	// kept is how many sets of secrets of one owner are known: those of a start before, too, whose
	// texts may come yet.
	kept = 3
)

// Secrets are those that are known. The zero value knows none.
type Secrets struct {
	mu    sync.RWMutex
	of    map[string][][]string
	words *strings.Replacer
}

// Set notes the secrets of an owner, such as a plugin at its start.
func (s *Secrets) Set(owner string, secrets []string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[string][][]string{}
	}
	sets := s.of[owner]
	if n := len(sets); len(secrets) == 0 || n > 0 && slices.Equal(sets[n-1], secrets) {
		return
	}
	sets = append(sets, secrets)
	s.of[owner] = sets[max(0, len(sets)-kept):]
	s.learn()
}

// learn makes the replacer of all that is known. Longer ones come first: one may be part of
// another.
func (s *Secrets) learn() {
	known := map[string]bool{}
	for _, sets := range s.of {
		for _, set := range sets {
			for _, secret := range set {
				for _, form := range forms(secret) {
					known[form] = true
				}
			}
		}
	}
	all := make([]string, 0, len(known))
	for form := range known {
		all = append(all, form)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, form := range all {
		pairs = append(pairs, form, Word)
	}
	s.words = strings.NewReplacer(pairs...)
}

// forms are the ways in which a secret may stand in a text: as it is, each of its lines, and as it
// is written in JSON, in Go, in a URL and in base64.
func forms(secret string) []string {
	var all []string
	add := func(form string) {
		if len(form) >= shortest && strings.Trim(form, " \t") != "" {
			all = append(all, form)
		}
	}
	for _, part := range append(strings.Split(secret, "\n"), secret) {
		part = strings.TrimSuffix(part, "\r")
		if len(part) < shortest || strings.HasPrefix(part, "-----") { // a PEM block's first and last lines say nothing
			continue
		}
		add(part)
		quoted := strconv.Quote(part)
		add(quoted[1 : len(quoted)-1])
		if text, err := json.Marshal(part); err == nil {
			add(string(text[1 : len(text)-1]))
		}
		add(url.QueryEscape(part))
		add(url.PathEscape(part))
		const enough = 8 // of what is short base64 is found by chance
		if len(part) >= enough {
			add(strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(part)), "="))
			add(strings.TrimRight(base64.URLEncoding.EncodeToString([]byte(part)), "="))
		}
	}
	return all
}

// Text returns a text without what is secret, nor what looks like it (sdk/redact).
func (s *Secrets) Text(text string) string { return redact.Text(s.known(text)) }

// known returns a text without the secrets that are known.
func (s *Secrets) known(text string) string {
	if s == nil || text == "" {
		return text
	}
	s.mu.RLock()
	words := s.words
	s.mu.RUnlock()
	if words == nil {
		return text
	}
	return words.Replace(text)
}

// Repeated returns a text of somebody who has a resource without the values that are secret in it.
func Repeated(text string, values []string) string {
	s := &Secrets{}
	s.Set("", values)
	return s.Text(text)
}

// Error returns an error whose text has nothing secret in it.
func (s *Secrets) Error(err error) error {
	if err == nil {
		return nil
	}
	if text := s.Text(err.Error()); text != err.Error() {
		return masked{err, text}
	}
	return err
}

type masked struct {
	error
	text string
}

func (e masked) Error() string { return e.text }
func (e masked) Unwrap() error { return e.error }

// JSON returns a value as JSON whose strings have nothing secret in them.
func (s *Secrets) JSON(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return text, err
	}
	var out []byte
	for i := 0; i < len(text); {
		if text[i] != '"' {
			out, i = append(out, text[i]), i+1
			continue
		}
		end := i + 1
		for text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		var word string
		if err := json.Unmarshal(text[i:end+1], &word); err != nil {
			return nil, err
		}
		if without := s.Text(word); without != word {
			quoted, _ := json.Marshal(without) // a string always can be
			out = append(out, quoted...)
		} else {
			out = append(out, text[i:end+1]...)
		}
		i = end + 1
	}
	return out, nil
}
