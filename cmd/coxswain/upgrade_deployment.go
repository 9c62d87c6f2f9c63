package main

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/cmd/internal/migrate"
	"github.com/coxswain-mesh/coxswain/cmd/internal/webhooks"
	"github.com/spf13/cobra"
)

// upgradeDeployment checks how a Deployment runs a control plane: as a process would be that has
// its files in a folder.
func upgradeDeployment(c *cobra.Command, p *program, u upgrading) error {
	in, err := deployments(c, p, u)
	if err != nil {
		return err
	}
	is, err := in.Running(u.deployment)
	if err != nil {
		return err
	}
	root, err := os.MkdirTemp("", "coxswain-upgrade-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(root) }()
	inside := under(root, is.Mounts)
	for path, text := range is.Files {
		at := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(at, []byte(inside.Replace(text)), 0o600); err != nil {
			return err
		}
	}
	r := &upgradeReport{Version: build(), Since: u.since, Findings: []outcome{}}
	if tag := is.Tag(); r.Since == "" && strings.HasPrefix(tag, "v") {
		r.Since = tag
	}
	args, environ := replaceAll(inside, is.Args), replaceAll(inside, is.Environ)
	s := r.settings(args, environ)
	r.plugins(s, environ, in)
	if dir := s.History.StateDir; dir != "" {
		r.add(isUnread, "state", dir+": run upgrade check in the pod for what it has")
	}
	r.add(isUnread, "Deployment", is.Unread...)
	r.outside(root)
	return upgradeEnds(c.Context(), p, u, r, args, environ)
}

// deployments reads Deployments and ConfigMaps, from files or a cluster.
func deployments(c *cobra.Command, p *program, u upgrading) (*migrate.Input, error) {
	in := &migrate.Input{}
	if !u.live {
		names, err := findFiles(u.files)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if err := readIstiod(p, in, name); err != nil {
				return nil, err
			}
		}
		return in, nil
	}
	client, ctx, cancel, err := u.client(p, c)
	if err != nil {
		return nil, err
	}
	defer cancel()
	if in.Deployments, err = webhooks.Deployments.List(ctx, client, u.namespace, ""); err != nil {
		return nil, err
	}
	in.ConfigMaps, err = webhooks.ConfigMaps.List(ctx, client, u.namespace, "")
	return in, err
}

// under puts the paths of what is mounted into a folder.
func under(root string, mounts []string) *strings.Replacer {
	all := slices.Clone(mounts)
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // the longest that fits counts
	var pairs []string
	for _, m := range slices.Compact(all) {
		pairs = append(pairs, m, filepath.Join(root, m))
	}
	return strings.NewReplacer(pairs...)
}

func replaceAll(by *strings.Replacer, all []string) []string {
	out := make([]string, len(all))
	for i, text := range all {
		out[i] = by.Replace(text)
	}
	return out
}

// outside names files as the container has them. What would be refused because a file is missing
// that was not read is not known.
func (r *upgradeReport) outside(root string) {
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Means == isRefused && strings.Contains(f.Text, root) && strings.Contains(f.Text, "no such file") {
			f.Means = isUnread
		}
		f.Text = strings.ReplaceAll(f.Text, root, "")
	}
}
