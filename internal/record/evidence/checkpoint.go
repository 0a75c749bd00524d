package evidence

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Bounds of what is read.
const (
	maxNote = 16 << 10 // of a checkpoint, with the signatures of witnesses
	maxSize = 1 << 62  // leaves of a tree
)

var (
	// ErrMismatch says that what was read whole is not true: a signature, a
	// proof or a record is not what it should be.
	ErrMismatch = errors.New("not as it should be")
	// ErrOther says that a checkpoint is of another log than the key.
	ErrOther = errors.New("of another log")
)

// A Checkpoint says what the tree of a log was at one size.
type Checkpoint struct {
	Origin string
	Size   uint64
	Root   tlog.Hash
}

// text is the note without its signatures, as C2SP tlog-checkpoint has it.
func (c Checkpoint) text() string {
	return c.Origin + "\n" + strconv.FormatUint(c.Size, 10) + "\n" + c.Root.String() + "\n"
}

// Seal returns the signed checkpoint of a tree.
func (k *Key) Seal(size uint64, root [32]byte) ([]byte, error) {
	if size > maxSize {
		return nil, fmt.Errorf("signing a checkpoint: no tree has %d leaves", size)
	}
	c := Checkpoint{Origin: k.public.Origin(), Size: size, Root: root}
	text, err := note.Sign(&note.Note{Text: c.text()}, k.signer)
	if err != nil {
		return nil, fmt.Errorf("signing a checkpoint: %w", err)
	}
	return text, nil
}

// SealMark is [Key.Seal] with lines behind the root, by which the log signs what
// else is true of it at that size. No mark is taken for a checkpoint.
func (k *Key) SealMark(size uint64, root [32]byte, lines []string) ([]byte, error) {
	if size > maxSize || len(lines) == 0 || slices.ContainsFunc(lines, func(l string) bool {
		return l == "" ||
			strings.Contains(l, "\n")
	}) {
		return nil, errors.New("signing a mark: it has a size that no tree has, or lines that are none")
	}
	c := Checkpoint{Origin: k.public.Origin(), Size: size, Root: root}
	text, err := note.Sign(&note.Note{Text: c.text() + strings.Join(lines, "\n") + "\n"}, k.signer)
	if err != nil {
		return nil, fmt.Errorf("signing a mark: %w", err)
	}
	return text, nil
}

// OpenNote reads a checkpoint or a mark, which has lines, and checks its
// signature, with errors as of [PublicKey.Open].
func (p *PublicKey) OpenNote(text []byte) (Checkpoint, []string, error) {
	c, lines, err := parseNote(text)
	if err != nil {
		return c, nil, fmt.Errorf("reading a checkpoint: %w", err)
	}
	return c, lines, p.verify(c, text)
}

// Open reads a checkpoint and checks its signature. The error is [ErrOther] when
// it is of another log, [ErrMismatch] when its signature is not this key's.
func (p *PublicKey) Open(text []byte) (Checkpoint, error) {
	c, err := parseCheckpoint(text)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("reading a checkpoint: %w", err)
	}
	return c, p.verify(c, text)
}

// verify checks that this log signed text, which says c.
func (p *PublicKey) verify(c Checkpoint, text []byte) error {
	if c.Origin != p.Origin() {
		return fmt.Errorf("the checkpoint at %d is %w: %s, not %s", c.Size, ErrOther, c.Origin, p.Origin())
	}
	if _, err := note.Open(text, note.VerifierList(p.verifier)); err != nil {
		return fmt.Errorf("the checkpoint at %d is %w: the key %s did not sign it", c.Size, ErrMismatch, p.line)
	}
	return nil
}

func parseCheckpoint(text []byte) (Checkpoint, error) {
	c, lines, err := parseNote(text)
	if err == nil && len(lines) > 0 {
		err = fmt.Errorf("its text has %d lines, not the three of a checkpoint: origin, size and root", 3+len(lines))
	}
	return c, err
}

// parseNote reads a checkpoint whoever signed it, and the lines behind its root.
func parseNote(text []byte) (Checkpoint, []string, error) {
	if len(text) > maxNote {
		return Checkpoint{}, nil, fmt.Errorf("it is larger than %d bytes", maxNote)
	}
	body, signatures, ok := strings.Cut(string(text), "\n\n")
	if !ok || !strings.HasPrefix(signatures, "— ") || !strings.HasSuffix(signatures, "\n") {
		return Checkpoint{}, nil, errors.New("it is no signed note: its text, an empty line, and lines of signatures")
	}
	lines := strings.Split(body, "\n")
	if len(lines) < 3 {
		return Checkpoint{}, nil, fmt.Errorf("its text has %d lines, not the three of a checkpoint: origin, size and root",
			len(lines))
	}
	c := Checkpoint{Origin: lines[0]}
	if err := wholeSignatures(signatures, c.Origin); err != nil {
		return Checkpoint{}, nil, err
	}
	size, ok := parseNumber(lines[1])
	if !ok {
		return Checkpoint{}, nil, fmt.Errorf("the size %q is no number of leaves", lines[1])
	}
	root, ok := parseHash(lines[2])
	if !ok || c.Origin == "" {
		return Checkpoint{}, nil, errors.New("the third line is no root: the base64 of 32 bytes")
	}
	c.Size, c.Root = size, root
	if c.Size == 0 && c.Root != emptyRoot() {
		return Checkpoint{}, nil, errors.New("the root of the empty tree is another")
	}
	return c, lines[3:], nil
}

// wholeSignatures refuses lines of signatures that are none, or that were cut
// while the log's own was written.
func wholeSignatures(lines, origin string) error {
	const own = 4 + ed25519.SignatureSize // behind the hash of the key
	for line := range strings.Lines(lines) {
		name, sig, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(line, "— "), "\n"), " ")
		raw, err := base64.StdEncoding.Strict().DecodeString(sig)
		if !ok || name == "" || !strings.HasPrefix(line, "— ") || err != nil || len(raw) < 5 || name == origin &&
			len(raw) < own {
			return errors.New("its signatures are cut, or no signatures")
		}
	}
	return nil
}

func parseNumber(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 63)
	return n, err == nil && n <= maxSize && strconv.FormatUint(n, 10) == s
}

// parseHash reads a hash that is written in the one way there is.
func parseHash(s string) (h tlog.Hash, ok bool) {
	if len(s) != base64.StdEncoding.EncodedLen(len(h)) {
		return h, false
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil || len(raw) != len(h) {
		return h, false
	}
	return tlog.Hash(raw), true
}

func emptyRoot() tlog.Hash {
	h, err := tlog.TreeHash(0, nil)
	if err != nil {
		panic(err) // nothing is read for it
	}
	return h
}
