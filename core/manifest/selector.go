package manifest

import (
	"fmt"
	"slices"
	"strings"
)

// selectorKeys are what a selector may ask for; labels and metadata are followed by a dot and a
// key.
var selectorKeys = []string{"id", "cluster", "userAgent", "generator", "namespace", "locality", "labels.KEY", "metadata.KEY"}

// ParseSelector reads proxies as people write them in one word: KEY=PATTERN, joined by commas, with
// the keys and patterns of `select`. All of them must match. nil: all proxies are meant.
func ParseSelector(text string) (*Select, error) {
	if text == "" {
		return nil, nil
	}
	s := &Select{}
	for term := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(term, "=")
		if !ok || strings.TrimSpace(key) == "" {
			return nil, fmt.Errorf("%q is not KEY=PATTERN; KEY is %s", term, strings.Join(selectorKeys, ", "))
		}
		var pattern Glob
		if err := pattern.UnmarshalText([]byte(strings.TrimSpace(value))); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if err := s.ask(strings.TrimSpace(key), pattern); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// ask adds what a selector asks for.
func (s *Select) ask(key string, pattern Glob) error {
	plain := map[string]*Glob{
		"id": &s.ID, "cluster": &s.Cluster, "userAgent": &s.UserAgent, "generator": &s.Generator, "namespace": &s.Namespace, "locality": &s.Locality,
	}
	field, of, dotted := strings.Cut(key, ".")
	switch {
	case plain[key] != nil && *plain[key] != "":
		return fmt.Errorf("%s is asked for twice", key)
	case plain[key] != nil:
		*plain[key] = pattern
	case dotted && of != "" && slices.Contains([]string{"labels", "metadata"}, field):
		all := &s.Labels
		if field == "metadata" {
			all = &s.Metadata
		}
		if *all == nil {
			*all = map[string]Glob{}
		}
		if (*all)[of] != "" {
			return fmt.Errorf("%s is asked for twice", key)
		}
		(*all)[of] = pattern
	default:
		return fmt.Errorf("nothing of a proxy is called %q; there is %s", key, strings.Join(selectorKeys, ", "))
	}
	return nil
}
