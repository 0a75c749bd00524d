package bundles

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// checkName returns what is wrong with the name of a file inside a bundle, or
// "". A name that passes is relative, clean, slash-separated, and one name on
// every file system.
func checkName(name string) string {
	switch {
	case name == "":
		return "an entry has no name"
	case len(name) > MaxName:
		return fmt.Sprintf("the name has %d bytes; at most %d are allowed", len(name), MaxName)
	case !utf8.ValidString(name):
		return "the name is not UTF-8"
	case strings.HasPrefix(name, "/"):
		return "the name is an absolute path"
	}
	for _, r := range name {
		if what := badRune(r); what != "" {
			return fmt.Sprintf("the name contains %s (%U)", what, r)
		}
	}
	if !norm.NFC.IsNormalString(name) {
		return "the name is not in Unicode form NFC: systems differ on which file it is"
	}
	if n := strings.Count(name, "/") + 1; n > MaxDepth {
		return fmt.Sprintf("the name is %d folders deep; at most %d are allowed", n, MaxDepth)
	}
	for part := range strings.SplitSeq(name, "/") {
		if what := badComponent(part); what != "" {
			return what
		}
	}
	return ""
}

// wrongPath is what is wrong with the absolute path of a program, and what to write.
func wrongPath(p string) (wrong, hint string) {
	if clean := path.Clean(p); clean != p {
		return "the path is not as short as it can be", "write " + clean
	}
	for _, r := range p {
		if what := badRune(r); what != "" {
			return fmt.Sprintf("the path contains %s (%U)", what, r), ""
		}
	}
	return "", ""
}

// badRune names what a character is that no name may have. What cannot be seen
// or turns the reading direction makes one name look like another.
func badRune(r rune) string {
	switch {
	case r == '\\':
		return "a backslash, which some systems take for a folder"
	case r == ':':
		return "a colon, which some systems take for a drive or a stream"
	case unicode.IsControl(r):
		return "a control character"
	case unicode.Is(unicode.Bidi_Control, r):
		return "a character that turns the reading direction"
	case r != ' ' && !unicode.IsPrint(r):
		return "an invisible character"
	}
	return ""
}

func badComponent(part string) string {
	switch {
	case part == "":
		return "the name has an empty component"
	case part == ".", part == "..":
		return fmt.Sprintf("the name has the component %q", part)
	case strings.HasSuffix(part, "."), strings.HasSuffix(part, " "):
		return "the name has a component that ends in a dot or a blank, which some systems drop"
	case isDevice(part):
		return fmt.Sprintf("%q is the name of a device on some systems", part)
	}
	return ""
}

// isDevice reports whether Windows takes a component for a device, whatever
// extension follows it.
func isDevice(part string) bool {
	stem, _, _ := strings.Cut(part, ".")
	stem = strings.ToUpper(strings.TrimRight(stem, " "))
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$":
		return true
	}
	for _, port := range []string{"COM", "LPT"} {
		if n, ok := strings.CutPrefix(stem, port); ok && utf8.RuneCountInString(n) == 1 {
			return strings.ContainsAny(n, "0123456789¹²³")
		}
	}
	return false
}

// fold returns what is equal for two names that some file system takes for one.
func fold(name string) string {
	ascii := true
	for i := range len(name) {
		ascii = ascii && name[i] < utf8.RuneSelf
	}
	if ascii {
		return strings.ToUpper(name) // as oneCase does
	}
	// Folding can leave the normal form and the normal form can be foldable
	// again: once around is the form that Unicode defines for this (D147).
	once := norm.NFKC.String(foldCase(oneCase(norm.NFD.String(name))))
	return norm.NFKC.String(oneCase(foldCase(once)))
}

// foldCase is the case folding of Unicode, in full, of what is in one of the
// normal forms that fold asks it about: most letters that fold to several are
// taken apart by those. (x/text/cases does it for every text and language, and
// makes its tables when the program starts.)
func foldCase(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch r {
		case 'ß', 'ẞ':
			b.WriteString("ss")
		case 'ı': // which has a capital that is that of i, and is another letter
			b.WriteRune(r)
		case '\u0345':
			b.WriteRune('ι')
		case 'İ', 'ǰ', 'ΐ', 'ΰ', 'ẖ', 'ẗ', 'ẘ', 'ẙ', 'ὐ', 'ὒ', 'ὔ', 'ὖ', 'ᾶ', 'ᾷ', 'ῆ', 'ῇ', 'ῒ', '\u1fd3', 'ῖ', 'ῗ', 'ῢ',
			'\u1fe3', 'ῤ', 'ῦ', 'ῧ', 'ῶ', 'ῷ':
			b.WriteString(foldCase(norm.NFD.String(string(r))))
		default:
			b.WriteRune(unicode.ToLower(unicode.ToUpper(r)))
		}
	}
	return b.String()
}

// oneCase puts the first of all letters that differ only in case in the place
// of each: the folding above leaves out some scripts, Cherokee among them.
func oneCase(name string) string {
	return strings.Map(func(r rune) rune {
		first := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			first = min(first, other)
		}
		return first
	}, name)
}

// A nameSet is the names of a bundle so far: what its entries are called and
// the folders that they lie in.
type nameSet struct {
	seen map[string]named // by folded name
}

type named struct {
	name     string
	dir      bool
	explicit bool // an entry of its own, not only a folder that entries lie in
}

// add takes the name of an entry, or says why it cannot stand beside those
// already there.
func (s *nameSet) add(name string, dir bool) string {
	if s.seen == nil {
		s.seen = make(map[string]named)
	}
	for i := range len(name) {
		if name[i] == '/' {
			if what := s.put(named{name: name[:i], dir: true}); what != "" {
				return what
			}
		}
	}
	return s.put(named{name: name, dir: dir, explicit: true})
}

func (s *nameSet) put(n named) string {
	key := fold(n.name)
	old, ok := s.seen[key]
	switch {
	case !ok:
	case old.name != n.name:
		return fmt.Sprintf("%q and %q are one name on some systems", old.name, n.name)
	case old.dir != n.dir:
		return fmt.Sprintf("%q is both a file and a folder", n.name)
	case old.explicit && n.explicit:
		return fmt.Sprintf("%q is there twice", n.name)
	case old.explicit:
		return ""
	}
	s.seen[key] = n
	return ""
}
