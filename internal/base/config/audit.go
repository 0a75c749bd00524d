package config

import (
	"net/url"
	"path/filepath"
	"strings"
)

// Audit is [audit]: how the log proves itself.
type Audit struct {
	CheckpointEvery int64    // records at most between two checkpoints
	Publish         []string `path:"audit.publish"` // where checkpoints are told, "file:", "git:" or a URL each
}

func auditSettings() []setting {
	return []setting{
		count("audit.checkpoint_every", func(c *Config) *int64 { return &c.Audit.CheckpointEvery }, 1, 1<<30),
		list("audit.publish", func(c *Config) *[]string { return &c.Audit.Publish }, sink),
	}
}

// sink is the check of a place that checkpoints are told.
func sink(s string) string {
	const form = `must be "file:/path", "git:/path" of a repository, or an https URL (http for a loopback address alone)`
	scheme, rest, _ := strings.Cut(s, ":")
	switch scheme {
	case "file", "git":
		if !filepath.IsAbs(rest) || filepath.Clean(rest) != rest {
			return form + ", and its path absolute and clean"
		}
		return ""
	case "https", "http":
		if msg := webAddress(s); msg != "" {
			return msg
		}
		if u, err := url.Parse(s); err != nil || scheme == "http" && !isLoopback(u.Hostname()) {
			return form
		}
		return ""
	}
	return form
}
