package places

import (
	"errors"
	"fmt"

	"runloop.dev/rlp/caps"
)

// A Text is a sentence that keeps what it says of the host apart from its words, until
// it is known who reads it.
type Text struct {
	format string
	args   []any
}

// Textf is a text. Of its arguments a [Path], a [Capability], a [Layer], a [caps.Pos], a
// [caps.Grant] and another Text or list of them are named by who reads it; a string is
// told to everybody, and so is a number. Nothing else should be given but errors, of
// which nobody is told who does not operate.
func Textf(format string, args ...any) Text { return Text{format, args} }

// Arguments of texts.
type (
	// A Path is one of the host.
	Path string
	// A Capability has a scope, which may be a path.
	Capability string
	// A Layer is the name of one.
	Layer string
)

// String is the text as who operates reads it.
func (t Text) String() string { s, _ := t.To(nil); return s }

// To is the text as somebody reads it; false: nothing is told of it.
func (t Text) To(n *Names) (string, bool) {
	args := make([]any, len(t.args))
	for i, a := range t.args {
		told, is := argument(n, a)
		if !is {
			return "", false
		}
		args[i] = told
	}
	return fmt.Sprintf(t.format, args...), t.format != ""
}

func argument(n *Names, a any) (any, bool) {
	switch a := a.(type) {
	case Path:
		return n.Path(string(a)), true
	case Capability:
		return n.Capability(string(a)), true
	case caps.Pos:
		return n.Pos(a), true
	case caps.Grant:
		return n.Capability(a.String()), true
	case Layer:
		if n != nil && a == caps.ProtectedLayer {
			return "the " + caps.HostLayer, true
		}
	case Text:
		return a.To(n)
	case error:
		return a, n == nil
	}
	return a, true
}

// Join is texts with something between them.
func Join(list []Text, between string) Text {
	joined := Text{}
	for i, t := range list {
		if i > 0 {
			joined.format += "%s"
			joined.args = append(joined.args, between)
		}
		joined.format += "%s"
		joined.args = append(joined.args, t)
	}
	return joined
}

// Host is what is said of the host in words, or of what stands on it: of it nobody is
// told who does not operate.
func Host(text string) Text { return Textf("%v", errors.New(text)) }
