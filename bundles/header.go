package bundles

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

const blockSize = 512

// Where the fields of a header lie. Modes, owners and times are not read: they
// are not taken from an archive.
const (
	offSize     = 124
	offChecksum = 148
	offType     = 156
	offMagic    = 257
	offPrefix   = 345
	offRest     = 500
)

const (
	typeFile    = '0'
	typeFileOld = 0
	typeDir     = '5'
	typePax     = 'x'
	typeGNUName = 'L'
)

// A header is one 512-byte block of a tar archive, as far as it counts here.
type header struct {
	name string
	kind byte
	size int64
}

// parseHeader reads a header, or says what is wrong with it. It knows POSIX
// ustar, its GNU dialect and the oldest form, and refuses any field in which
// readers of those could see different things.
func parseHeader(b *[blockSize]byte) (header, string) {
	if !checksumHolds(b) {
		return header{}, "this is not the header of a tar entry, or it is damaged"
	}
	h := header{kind: b[offType]}
	var ok bool
	if h.size, ok = octal(b[offSize : offSize+12]); !ok {
		return header{}, "the size of an entry is not a plain octal number"
	}
	name, ok := text(b[:100])
	if !ok {
		return header{}, "a name has bytes behind its end"
	}
	switch magic := string(b[offMagic : offMagic+8]); {
	case magic == "ustar\x0000":
		prefix, ok := text(b[offPrefix:offRest])
		if !ok || !isZero(b[offRest:]) {
			return header{}, "a name has bytes behind its end"
		}
		if prefix != "" {
			name = prefix + "/" + name
		}
	case magic == "ustar  \x00":
		if !isZero(b[offPrefix:]) {
			return header{}, "an entry has GNU extension fields, which readers take for different things"
		}
	case isZero(b[offMagic:]):
	default:
		return header{}, "an entry is in an unknown dialect of tar"
	}
	h.name = name
	return h, ""
}

func checksumHolds(b *[blockSize]byte) bool {
	want, ok := octal(b[offChecksum : offChecksum+8])
	sum := int64(8 * ' ')
	for i, c := range b {
		if i < offChecksum || i >= offChecksum+8 {
			sum += int64(c)
		}
	}
	return ok && sum == want
}

// octal reads a number field: digits, which blanks may lead and blanks or NULs
// must end or fill. The binary form is not one: it is for sizes beyond 8 GiB.
func octal(f []byte) (int64, bool) {
	f = bytes.TrimLeft(f, " ")
	end := 0
	for end < len(f) && '0' <= f[end] && f[end] <= '7' {
		end++
	}
	if end == 0 || strings.Trim(string(f[end:]), " \x00") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(string(f[:end]), 8, 64)
	return n, err == nil
}

// text reads a text field up to its first NUL; only NULs may follow.
func text(f []byte) (string, bool) {
	i := bytes.IndexByte(f, 0)
	if i < 0 {
		return string(f), true
	}
	return string(f[:i]), isZero(f[i:])
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// parsePax reads the records of an extended header and returns the name that
// they give, or "" if they give none. A record that could change what an entry
// is (its size, a link, another character set, a hole) refuses; what describes
// only owners, times and attributes is read past.
func parsePax(data []byte) (name, wrong string) {
	seen := make(map[string]bool)
	for len(data) > 0 {
		length, rest, ok := bytes.Cut(data, []byte(" "))
		n, err := strconv.Atoi(string(length))
		if !ok || err != nil || length[0] < '1' || length[0] > '9' || n <= len(length)+1 || n > len(data) ||
			data[n-1] != '\n' {
			return "", "an extended header is malformed"
		}
		key, value, ok := strings.Cut(string(rest[:n-len(length)-2]), "=")
		switch {
		case !ok || key == "":
			return "", "an extended header is malformed"
		case seen[key]:
			return "", fmt.Sprintf("an extended header has the record %q twice", key)
		case key == "path" && value == "":
			return "", "an entry has no name"
		case key == "path":
			name = value
		case !paxHarmless(key):
			return "", fmt.Sprintf("an extended header has the record %q, which a bundle may not have", key)
		}
		seen[key] = true
		data = data[n:]
	}
	return name, ""
}

func paxHarmless(key string) bool {
	switch key {
	case "mtime", "atime", "ctime", "uid", "gid", "uname", "gname", "comment":
		return true
	}
	for _, p := range []string{"SCHILY.xattr.", "SCHILY.acl.", "LIBARCHIVE.xattr.", "RHT.security."} {
		if strings.HasPrefix(key, p) {
			return true
		}
	}
	return key == "LIBARCHIVE.creationtime" || key == "SCHILY.fflags"
}

// parseGNUName reads the data of a GNU long-name entry: the name and its NUL.
func parseGNUName(data []byte) (name, wrong string) {
	s, ok := strings.CutSuffix(string(data), "\x00")
	if !ok || s == "" || strings.Contains(s, "\x00") {
		return "", "a long name is malformed"
	}
	return s, ""
}

func refusedType(kind byte) string {
	switch kind {
	case '1':
		return "a hard link"
	case '2':
		return "a symbolic link"
	case '3', '4':
		return "a device"
	case '6':
		return "a pipe"
	case 'S':
		return "a sparse file"
	case 'g':
		return "a global extended header"
	case 'K':
		return "a long link name"
	}
	return fmt.Sprintf("an entry of type %q", kind)
}
