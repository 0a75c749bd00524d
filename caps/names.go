package caps

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxPath bounds a path in bytes.
const MaxPath = 4096

// CleanPath is the canonical form of an absolute path that a policy names:
// cleaned by its text alone, without looking at the disk. It refuses relative
// paths, control characters, what is not UTF-8, blanks at the end, backslashes,
// which separate nothing here, and the glob characters * ? [, which a path grant
// does not have. dotdot says that a ".."
// was in it, which deserves a warning.
func CleanPath(s string) (path string, dotdot bool, err error) {
	switch {
	case s == "":
		return "", false, errors.New("the path is empty: write an absolute path such as \"/home/user/notes\"")
	case s[0] != '/':
		return "", false, fmt.Errorf("the path %q is relative: write an absolute path such as \"/home/user/notes\"", s)
	case len(s) > MaxPath:
		return "", false, fmt.Errorf("the path is %d bytes long: at most %d", len(s), MaxPath)
	case strings.ContainsAny(s, "*?["):
		return "", false, fmt.Errorf("the path %q has a glob character (* ? [): globs not allowed in v0.1; write the "+
			"directory itself, which holds all below it", s)
	case strings.Contains(s, `\`):
		return "", false, fmt.Errorf("the path %q has a backslash, which is a letter of a name and separates nothing: "+
			"write /, or the directory above a name that really has one", s)
	case !isText(s):
		return "", false, fmt.Errorf("the path %q has control characters or is not UTF-8", s)
	}
	var parts []string
	for part := range strings.SplitSeq(s, "/") {
		switch part {
		case "", ".":
		case "..":
			dotdot = true
			parts = parts[:max(len(parts)-1, 0)]
		default:
			parts = append(parts, part)
		}
	}
	path = "/" + strings.Join(parts, "/")
	if path != strings.TrimSpace(path) {
		return "", false, fmt.Errorf("the path %q has blanks at its end: leave them out, or write the directory above", s)
	}
	return path, dotdot, nil
}

// isText reports whether s is UTF-8 without control characters.
func isText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 })
}

// isCleanPath reports whether s is absolute and clean. Any byte but NUL may be
// in a file's name.
func isCleanPath(s string) bool {
	if s == "/" {
		return true
	}
	if s == "" || s[0] != '/' || len(s) > MaxPath || strings.Contains(s, "\x00") {
		return false
	}
	for part := range strings.SplitSeq(s[1:], "/") {
		if !isPart(part) {
			return false
		}
	}
	return true
}

// isPart reports whether s, which has no slash, is a name within a folder.
func isPart(s string) bool { return len(s) > 2 || s != "" && s != "." && s != ".." }

// isWord reports whether s is 1 to max bytes, each of which ok accepts.
func isWord(s string, limit int, ok func(c byte) bool) bool {
	if s == "" || len(s) > limit {
		return false
	}
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) bool { return 'a' <= c && c <= 'z' }
func digit(c byte) bool { return '0' <= c && c <= '9' }
func alnum(c byte) bool { return lower(c|0x20) || digit(c) }

func isDomain(s string) bool {
	return isWord(s, 64, func(c byte) bool { return lower(c) || digit(c) || c == '_' || c == '-' }) && lower(s[0])
}

func isRaw(s string) bool { return strings.HasSuffix(s, "_raw") }

func isWritableDomain(s string) bool { return isDomain(s) && !isRaw(s) }

func isEnvName(s string) bool {
	return isWord(s, 255, func(c byte) bool { return c > ' ' && c < 0x7f && c != '=' && c != '*' })
}

func isPlainName(s string) bool {
	return isWord(s, 64, func(c byte) bool { return alnum(c) || c == '_' || c == '-' || c == '.' })
}

func isAgentName(s string) bool {
	return isDomain(s) // one rule for both: ^[a-z][a-z0-9_-]{0,63}$
}

func isProgram(s string) bool { return len(s) > 1 && isCleanPath(s) }

func isModel(s string) bool {
	return isWord(s, 255, func(c byte) bool { return alnum(c) || strings.IndexByte("._/:@+-", c) >= 0 }) &&
		s[0] != ':' && s[len(s)-1] != ':'
}

// isSecretID reports whether s is "runloop/<scope>/<name>".
func isSecretID(s string) bool {
	scope, name, _ := strings.Cut(strings.TrimPrefix(s, "runloop/"), "/")
	return strings.HasPrefix(s, "runloop/") && isPlainName(scope) && isPlainName(name) && !dots(scope) && !dots(name)
}

func dots(s string) bool { return s == "." || s == ".." }

// isSecretScope reports whether s is a secret's id, alone or with "@host:port".
func isSecretScope(s string) bool {
	id, host, bound := strings.Cut(s, "@")
	return isSecretID(id) && (!bound || isHostPort(host))
}

// SecretID returns s when it is a secret's id, "runloop/<scope>/<name>".
func SecretID(s string) (string, error) {
	if !isSecretID(s) {
		return "", fmt.Errorf("the secret id %q is not of the form runloop/<scope>/<name>", s)
	}
	return s, nil
}

// IsName reports whether name is a well-formed scope of f other than its widest
// one and its patterns: what a request may ask for.
func IsName(f Family, name string) bool { return f < numUniverses && families[f].valid(name) }

// BoundTo reports whether a secret that is bound to this, "" to nothing, may be
// sent to host.
func BoundTo(to, host string) bool {
	if label, rest, ok := strings.Cut(host, "."); ok && label != "" && to == "*."+rest {
		return true
	}
	return to == "" || to == "*" || to == host
}
