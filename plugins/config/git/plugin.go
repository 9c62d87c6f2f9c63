// Package git is the built-in plugin config/git: Istio's resources from the files of a branch of a git repository.
//
// repository.go asks which commit a branch has and reads its files, source.go does so again and again and publishes what has changed.
package git

import (
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secure"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	// Repository is a URL (https, http, git, file) or the absolute path of a repository.
	Repository string `json:"repository"`
	// Branch is the one that is followed; empty: the one that the repository's HEAD names.
	Branch string `json:"branch"`
	// Folder of the branch's files; empty: all of them.
	Folder string `json:"folder"`
	// Interval is how often the branch is looked at.
	Interval string `json:"interval"`
	// Username and PasswordFile are for https and http.
	Username     string `json:"username"`
	PasswordFile string `json:"passwordFile"`
	// TLS is for https.
	TLS    *secure.TLS `json:"tls"`
	Limits limits      `json:"limits"`

	interval time.Duration
	// local is the path of a repository of this machine.
	local string
}

// limits bound what is taken of a commit.
type limits struct {
	Bytes     int64 `json:"bytes"`
	Files     int   `json:"files"`
	FileBytes int64 `json:"fileBytes"`
}

const schema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "required": ["repository"],
  "properties": {
    "repository": {"type": "string", "description": "A URL (https, http, git, file), or the absolute path of a repository."},
    "branch": {"type": "string", "description": "The branch that is followed; if absent, the one that the repository's HEAD names."},
    "folder": {"type": "string", "description": "The folder whose files are read, with all that is below it; if absent, all of the branch."},
    "interval": {"type": "string", "default": "30s", "description": "How often the branch is looked at; 1s at least."},
    "username": {"type": "string", "default": "git", "description": "For https and http, beside passwordFile."},
    "passwordFile": {"type": "string", "description": "File of a password or token, read anew each time. Needs https, but for this machine's own addresses."},
    "tls": {"type": "object", "additionalProperties": false, "description": "For https.", "properties": ` + secure.Properties + `},
    "limits": {"type": "object", "additionalProperties": false, "properties": {
      "bytes": {"type": "integer", "minimum": 1, "default": 67108864, "description": "Bytes that a commit's objects may have, unpacked."},
      "files": {"type": "integer", "minimum": 1, "default": 10000, "description": "Files of resources that a commit may have."},
      "fileBytes": {"type": "integer", "minimum": 1, "default": 33554432, "description": "Bytes beyond which a file is refused."}
    }}
  }
}`

func parse(config []byte) (Config, error) {
	c := Config{Username: "git", Limits: limits{Bytes: 64 << 20, Files: 10_000, FileBytes: 32 << 20}}
	if err := strict.Decode(config, &c); err != nil {
		return c, err
	}
	var err error
	if c.interval, err = strict.Duration("interval", c.Interval, 30*time.Second); err != nil {
		return c, err
	}
	folder := strings.Trim(path.Clean("/"+c.Folder), "/")
	switch {
	case c.interval < time.Second:
		return c, strict.Errorf("interval", "at least 1s")
	case folder != strings.Trim(c.Folder, "/") || strings.Contains(c.Folder, `\`):
		return c, strict.Errorf("folder", "%q is no path within a branch, such as mesh/production", c.Folder)
	case strings.HasPrefix(c.Branch, "refs/") || strings.HasPrefix(c.Branch, "-") || strings.ContainsAny(c.Branch, " ~^:?*[\\\n"):
		return c, strict.Errorf("branch", "%q is no branch's name, such as main", c.Branch)
	case c.Limits.Bytes < 1:
		return c, strict.Errorf("limits.bytes", "at least 1")
	case c.Limits.Files < 1:
		return c, strict.Errorf("limits.files", "at least 1")
	case c.Limits.FileBytes < 1:
		return c, strict.Errorf("limits.fileBytes", "at least 1")
	}
	c.Folder = folder
	return c, c.checkRepository()
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
		Publishes: append(kinds.Tables(), kinds.FaultTable),
		New: sdk.WithRawConfig([]byte(schema), func(config []byte) (sdk.ConfigSource, error) {
			c, err := parse(config)
			if err != nil {
				return nil, err
			}
			return &source{config: c}, nil
		}),
	}
}
