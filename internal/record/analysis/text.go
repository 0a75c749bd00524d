package analysis

import (
	"fmt"
	"strings"

	"runloop.dev/rlp/internal/base/printable"
)

// quote is s as a TOML string that shows what it is: what is invisible, or
// turns the direction of text, is escaped.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case !printable.Hidden(r):
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			fmt.Fprintf(&b, `\U%08X`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// maxComment bounds what one line says, in bytes: a guest chooses names of
// 4 KiB, and a document of more than 64 KiB is not read.
const maxComment = 400

// comment is s in one line of a document: a guest chose parts of it, and must
// neither end the line nor steer a terminal.
func comment(s string) string {
	if len(s) > maxComment {
		s = strings.ToValidUTF8(s[:maxComment], "") + "..."
	}
	return printable.Line(s)
}
