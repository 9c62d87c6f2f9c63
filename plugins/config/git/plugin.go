// Package git is the built-in plugin config/git: resources of Istio and of the Gateway API, and
// Ingresses, from the files of a branch of a git repository.
//
// repository.go asks which commit a branch has and reads its files, source.go does so again and
// again and publishes what has changed.
package git

import (
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secure"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	// Repository is a URL (https, http, git, file) or the absolute path of a repository.
	Repository string `json:"repository" required:"true" doc:"A URL (https, http, git, file), or the absolute path of a repository."`
	// Branch is the one that is followed; empty: the one that the repository's HEAD names.
	Branch string `json:"branch" doc:"The branch that is followed; if absent, the one that the repository's HEAD names."`
	// Folder of the branch's files; empty: all of them.
	Folder string `json:"folder" doc:"The folder whose files are read, with all that is below it; if absent, all of the branch."`
	// Interval is how often the branch is looked at.
	Interval time.Duration `json:"interval" min:"1s" doc:"How often the branch is looked at; 1s at least."`
	// Username and PasswordFile are for https and http.
	Username     string `json:"username" doc:"For https and http, beside passwordFile."`
	PasswordFile string `json:"passwordFile" doc:"File of a password or token, read anew each time. Needs https, but for this machine's own addresses."`
	// TLS is for https.
	TLS    *secure.TLS `json:"tls" doc:"For https."`
	Limits limits      `json:"limits"`
	kinds.Ordering

	// local is the path of a repository of this machine.
	local string
}

// limits bound what is taken of a commit.
type limits struct {
	Bytes     int64 `json:"bytes" min:"1" doc:"Bytes that a commit's objects may have, unpacked."`
	Files     int   `json:"files" min:"1" doc:"Files of resources that a commit may have."`
	FileBytes int64 `json:"fileBytes" min:"1" doc:"Bytes beyond which a file is refused."`
}

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{Interval: 30 * time.Second, Username: "git", Limits: limits{Bytes: 64 << 20, Files: 10_000, FileBytes: 32 << 20}}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	folder := strings.Trim(path.Clean("/"+c.Folder), "/")
	switch {
	case folder != strings.Trim(c.Folder, "/") || strings.Contains(c.Folder, `\`):
		return strict.Errorf("folder", "%q is no path within a branch, such as mesh/production", c.Folder)
	case strings.HasPrefix(c.Branch, "refs/") || strings.HasPrefix(c.Branch, "-") || strings.ContainsAny(c.Branch, " ~^:?*[\\\n"):
		return strict.Errorf("branch", "%q is no branch's name, such as main", c.Branch)
	}
	c.Folder = folder
	if err := c.Ordering.Check(); err != nil {
		return err
	}
	return c.checkRepository()
}

// checkRepository reports what is wrong with how the repository is reached.
func (c *Config) checkRepository() error {
	u, err := url.Parse(c.Repository)
	switch {
	case c.Repository == "":
		return strict.Errorf("repository", "is missing: a URL such as https://git.example/mesh.git, or an absolute path")
	case filepath.IsAbs(c.Repository):
		c.local = c.Repository
	case err != nil || u.Scheme == "":
		return strict.Errorf("repository", "is neither a URL such as https://git.example/mesh.git nor an absolute path")
	case u.User != nil:
		return strict.Errorf("repository", "has credentials in it: they belong into username and passwordFile")
	case u.Scheme == "file" && u.Host == "":
		c.local = u.Path
	case u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "git" || u.Host == "":
		return strict.Errorf("repository", "is of none of https, http, git and file")
	}
	scheme := ""
	if c.local == "" {
		scheme = u.Scheme
	}
	switch {
	case c.TLS != nil && scheme != "https":
		return strict.Errorf("tls", "is for repositories that begin with https")
	case c.TLS != nil && c.TLS.ServerName != "":
		return strict.Errorf("tls.serverName", "must be that of the URL")
	case c.PasswordFile != "" && scheme != "https" && (scheme != "http" || !ownHost(u.Hostname())):
		return strict.Errorf("passwordFile", "needs https: anybody could read a password that travels in plain text")
	}
	return c.TLS.Check("tls")
}

func ownHost(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ConfigSourcePlugin {
	return sdk.ConfigSourcePlugin{
		Name:      "config/git",
		Version:   "1",
		Publishes: slices.Concat(kinds.Tables(), kinds.OtherTables(), []string{secrets.Grants, kinds.FaultTable}),
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.ConfigSource, error) {
			return &source{config: c}, nil
		}),
	}
}
