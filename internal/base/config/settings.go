package config

import (
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// A setting is one key of config.toml: its dotted name and how it is taken.
// Sections are what the names imply; the file and the environment read the same
// table.
type setting struct {
	name string
	text bool // wants a string
	// show is what holds where nobody says anything; nil: an empty table
	show func(c *Config) any
	set  func(w *tomlfile.Walk, name string, v *tomlfile.Value, c *Config)
}

// A check returns what is wrong with a string, or "".
type check func(string) string

func oneOf(words ...string) check {
	return func(s string) string {
		if slices.Contains(words, s) {
			return ""
		}
		return "is one of " + strings.Join(words, ", ")
	}
}

// nameOf is the check of a name that a family of capabilities has: config and
// policies speak of the same things.
func nameOf(f caps.Family, what string) check {
	return func(s string) string {
		if caps.IsName(f, s) {
			return ""
		}
		return "must be " + what
	}
}

func profileName(s string) string {
	if s == "" {
		return ""
	}
	return nameOf(caps.Agents, "the name of a profile: a letter, then letters, digits, - and _, all lower-case")(strings.TrimPrefix(s, "_"))
}

func agentName(s string) string {
	return nameOf(caps.Agents, "the name of an agent: a letter, then letters, digits, - and _, all lower-case")(s)
}

func serverName(s string) string {
	return nameOf(caps.MCP, "the name of a server: letters, digits, - _ and .")(s)
}

func domainName(s string) string {
	if strings.HasSuffix(s, "_raw") {
		return "must not end in _raw, which lifts masking from the domain before it"
	}
	return nameOf(caps.KBWrite, "the name of a domain: a letter, then letters, digits, - and _, all lower-case")(s)
}

func modelName(s string) string {
	return nameOf(caps.Model, `the name of a model, such as "openai:gpt"`)(s)
}

// modelPattern is the name of a model, or the beginning of one and "*".
func modelPattern(s string) string {
	begin, wild := strings.CutSuffix(s, "*")
	if begin = strings.TrimSuffix(begin, ":"); wild && begin == "" {
		return ""
	}
	return nameOf(caps.Model, `the name of a model, such as "gpt-4o", or the beginning of one and "*"`)(begin)
}

func variableName(s string) string {
	return nameOf(caps.Env, "the name of a variable")(s)
}

func secretID(s string) string {
	if s == "" {
		return ""
	}
	if _, err := caps.SecretID(s); err != nil {
		return "must be a secret id, runloop/<scope>/<name>"
	}
	return ""
}

func notEmpty(s string) string {
	if strings.TrimSpace(s) == "" {
		return "must not be empty"
	}
	return ""
}

func hostPort(s string) string {
	host, port, err := net.SplitHostPort(s)
	n, perr := strconv.ParseUint(port, 10, 16)
	if err != nil || perr != nil || host == "" || strconv.FormatUint(n, 10) != port {
		return `must be "address:port", such as "127.0.0.1:8770"`
	}
	return ""
}

func webAddress(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return "must be an http or https URL without user, password and fragment"
	}
	return ""
}

// rejected is the end of a message about a text: the text itself, and of an address no
// more than scheme, host and path, for the rest may hold a password or a key.
func rejected(s string) string {
	if strings.Contains(s, "://") || strings.ContainsAny(s, "@?#") {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" || strings.Contains(u.Path, "@") { // a password may have a slash
			return ""
		}
		s = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	}
	return ", not " + strconv.Quote(s)
}

func absolute(s string) string {
	if !filepath.IsAbs(s) {
		return "must begin with the absolute path of a program"
	}
	return ""
}

func text(name string, field func(*Config) *string, ok check) setting {
	show := func(c *Config) any { return *field(c) }
	set := func(w *tomlfile.Walk, name string, v *tomlfile.Value, c *Config) {
		if !w.Is(v, name, tomlfile.String) {
			return
		}
		if msg := ok(v.Str); msg != "" {
			w.Errorf(v.Pos, "", "%s %s%s", name, msg, rejected(v.Str))
			return
		}
		*field(c) = v.Str
	}
	return setting{name: name, text: true, show: show, set: set}
}

func flag(name string, field func(*Config) *bool) setting {
	show := func(c *Config) any { return *field(c) }
	return setting{name: name, show: show, set: func(w *tomlfile.Walk, name string, v *tomlfile.Value, c *Config) {
		if w.Is(v, name, tomlfile.Bool) {
			*field(c) = v.Bool
		}
	}}
}

func list(name string, field func(*Config) *[]string, ok check) setting {
	show := func(c *Config) any { return append([]string{}, *field(c)...) }
	return setting{name: name, show: show, set: func(w *tomlfile.Walk, name string, v *tomlfile.Value, c *Config) {
		*field(c) = stringList(w, name, v, ok)
	}}
}

func stringList(w *tomlfile.Walk, name string, v *tomlfile.Value, ok check) []string {
	if !w.Is(v, name, tomlfile.Array) {
		return nil
	}
	var out []string
	for i := range v.Items {
		item := &v.Items[i]
		if !w.Is(item, name+"["+strconv.Itoa(i)+"]", tomlfile.String) {
			continue
		}
		if msg := ok(item.Str); msg != "" {
			w.Errorf(item.Pos, "", "%s[%d] %s%s", name, i, msg, rejected(item.Str))
			continue
		}
		out = append(out, item.Str)
	}
	return out
}

// count is a whole number between two bounds.
func count(name string, field func(*Config) *int64, low, high int64) setting {
	show := func(c *Config) any { return *field(c) }
	return setting{name: name, show: show, set: func(w *tomlfile.Walk, name string, v *tomlfile.Value, c *Config) {
		if !w.Is(v, name, tomlfile.Integer) {
			return
		}
		if v.Int < low || v.Int > high {
			w.Errorf(v.Pos, "leave it out for "+strconv.FormatInt(*field(c), 10), "%s must be from %d to %d, not %d", name, low,
				high, v.Int)
			return
		}
		*field(c) = v.Int
	}}
}
