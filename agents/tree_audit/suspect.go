package main

import (
	"bytes"
	"path"
	"slices"
	"strings"
)

// scanMax is how much of a file is searched, in bytes.
const scanMax = 1 << 20

// A kind is why a file is suspicious. The order is that of the report: what
// needs a look first comes first.
type kind int

const (
	privateKey kind = iota
	token
	envFile
	keyFile
	linkOutside
	bidiControl
	binary
	specialFile
)

func (k kind) String() string {
	return [...]string{
		"private_key", "token", "env_file", "key_file", "link_outside", "bidi_control", "binary",
		"special_file",
	}[k]
}

// A finding is one suspicious file. It never holds the secret itself.
type finding struct {
	path   string
	line   int // 0: the whole file
	kind   kind
	detail string
}

// byName judges a file by what it is called.
func byName(name string) []finding {
	base := strings.ToLower(path.Base(name))
	switch base {
	case "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".netrc", "_netrc", ".git-credentials", ".pgpass", ".htpasswd",
		".pypirc":
		return []finding{{path: name, kind: keyFile, detail: base}}
	}
	switch ext := path.Ext(base); ext {
	case ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk":
		return []finding{{path: name, kind: keyFile, detail: ext}}
	}
	if suffix, ok := strings.CutPrefix(base, ".env"); ok && (suffix == "" || suffix[0] == '.') {
		for _, harmless := range []string{".example", ".sample", ".template", ".dist"} {
			if strings.HasSuffix(suffix, harmless) {
				return nil
			}
		}
		return []finding{{path: name, kind: envFile, detail: base}}
	}
	return nil
}

// byContent judges a file by its beginning: the first of each thing it holds.
func byContent(name string, content []byte) []finding {
	if format := executable(content); format != "" {
		return []finding{{path: name, kind: binary, detail: format}}
	}
	if bytes.IndexByte(content[:min(len(content), 8000)], 0) >= 0 {
		return nil // an image, an archive, a font: no text to search
	}
	var found []finding
	add := func(at int, k kind, detail string) {
		if at >= 0 {
			found = append(found, finding{name, 1 + bytes.Count(content[:at], []byte("\n")), k, detail})
		}
	}
	add(privateKeyAt(content), privateKey, "PEM")
	for _, p := range patterns {
		add(p.find(content), token, p.name)
	}
	add(bidiAt(content), bidiControl, "text that reads otherwise than it runs")
	return found
}

func executable(content []byte) string {
	for _, f := range [...]struct{ magic, name string }{
		{"\x7fELF", "ELF"},
		{"MZ\x90\x00", "PE"},
		{"\x00asm", "WebAssembly"},
		{"!<arch>\n", "ar archive"},
		{"\xfe\xed\xfa\xce", "Mach-O"},
		{"\xfe\xed\xfa\xcf", "Mach-O"},
		{"\xce\xfa\xed\xfe", "Mach-O"},
		{"\xcf\xfa\xed\xfe", "Mach-O"},
		{"\xca\xfe\xba\xbe", "Java class or universal Mach-O"},
	} {
		if bytes.HasPrefix(content, []byte(f.magic)) {
			return f.name
		}
	}
	return ""
}

// privateKeyAt finds a PEM block with key material, encrypted or not. A line
// that only names the marker, as a program's source does, is no key.
func privateKeyAt(content []byte) int {
	const begin, end = "-----BEGIN ", "PRIVATE KEY-----"
	for at := 0; ; {
		i := bytes.Index(content[at:], []byte(begin))
		if i < 0 {
			return -1
		}
		at += i
		line, rest, _ := bytes.Cut(content[at:], []byte("\n"))
		if line = bytes.TrimRight(line, "\r"); bytes.HasSuffix(line, []byte(end)) && keyMaterial(rest) {
			return at
		}
		at += len(begin)
	}
}

// keyMaterial reports whether a line of base64 or a PEM header follows.
func keyMaterial(rest []byte) bool {
	line, _, _ := bytes.Cut(rest[:min(len(rest), 200)], []byte("\n"))
	line = bytes.TrimSpace(line)
	return bytes.HasPrefix(line, []byte("Proc-Type:")) ||
		len(line) >= 16 && !slices.ContainsFunc(line, func(c byte) bool { return !base64Byte(c) })
}

func base64Byte(c byte) bool { return alphanumeric(c) || c == '+' || c == '/' || c == '=' }

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// A pattern is the shape of a token: a prefix and at least so many characters
// of letters, digits and what else is allowed, with a word's end on both sides.
type pattern struct {
	name, prefix string
	length       int
	also         string
}

var patterns = [...]pattern{
	{"AWS access key id", "AKIA", 16, ""},
	{"AWS access key id", "ASIA", 16, ""},
	{"GitHub token", "ghp_", 36, ""},
	{"GitHub token", "gho_", 36, ""},
	{"GitHub token", "ghs_", 36, ""},
	{"GitHub token", "github_pat_", 50, "_"},
	{"GitLab token", "glpat-", 20, "-_"},
	{"Google API key", "AIza", 35, "-_"},
	{"Slack token", "xoxb-", 20, "-"},
	{"Slack token", "xoxp-", 20, "-"},
	{"Stripe key", "sk_live_", 24, ""},
	{"Anthropic key", "sk-ant-", 40, "-_"},
	{"OpenAI key", "sk-proj-", 40, "-_"},
	{"npm token", "npm_", 36, ""},
	{"PyPI token", "pypi-AgE", 40, "-_"},
}

func (p pattern) find(content []byte) int {
	for at := 0; ; {
		i := bytes.Index(content[at:], []byte(p.prefix))
		if i < 0 {
			return -1
		}
		at += i
		rest := content[at+len(p.prefix):]
		n := 0
		for n < len(rest) && n <= 512 && (alphanumeric(rest[n]) || strings.IndexByte(p.also, rest[n]) >= 0) {
			n++
		}
		exact := p.also != "" || n == p.length // those without punctuation have one length
		if n >= p.length && exact && (at == 0 || !alphanumeric(content[at-1])) {
			return at
		}
		at += len(p.prefix)
	}
}

// bidiAt finds a character that reorders what is shown: U+202A to U+202E and
// U+2066 to U+2069.
func bidiAt(content []byte) int {
	for at := 0; ; at++ {
		i := bytes.IndexByte(content[at:], 0xe2)
		if i < 0 || at+i+2 >= len(content) {
			return -1
		}
		at += i
		if b, c := content[at+1], content[at+2]; b == 0x80 && c >= 0xaa && c <= 0xae || b == 0x81 && c >= 0xa6 && c <= 0xa9 {
			return at
		}
	}
}
