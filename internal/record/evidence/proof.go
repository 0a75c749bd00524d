package evidence

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// First lines of proofs: C2SP tlog-proof, and ours for what it has no form for.
const (
	inclusionHeader   = "c2sp.org/tlog-proof@v1"
	consistencyHeader = "runloop.dev/rlp/tlog-consistency@v1"
)

// Bounds of proofs.
const (
	maxHashes = 128     // a tree of 2^62 leaves needs 62 for a leaf, and 64 between two sizes
	maxRecord = 4 << 20 // of a record as it is exported
)

// An Inclusion proves that a record is in a log.
type Inclusion struct {
	Record     []byte // the line as it is exported, without line end
	Index      uint64 // the number of the leaf; the record's seq is one more
	Hashes     []tlog.Hash
	Checkpoint []byte // the signed note of the tree that it is a leaf of
}

// A Consistency proves that the log of one checkpoint is the beginning of the
// log of another.
type Consistency struct {
	Hashes   []tlog.Hash
	Old, New []byte // signed notes
}

// AppendText appends the proof as C2SP tlog-proof has it; the record is the extra data.
func (p *Inclusion) AppendText(dst []byte) []byte {
	dst = append(dst, inclusionHeader+"\nextra "...)
	dst = base64.StdEncoding.AppendEncode(dst, p.Record)
	dst = append(dst, "\nindex "...)
	dst = strconv.AppendUint(dst, p.Index, 10)
	return append(appendHashes(append(dst, '\n'), p.Hashes), p.Checkpoint...)
}

// AppendText appends the proof: a header, the hashes of RFC 6962 section 2.1.2,
// an empty line, the old checkpoint, an empty line, the new one.
func (p *Consistency) AppendText(dst []byte) []byte {
	dst = appendHashes(append(dst, consistencyHeader+"\n"...), p.Hashes)
	return append(append(append(dst, p.Old...), '\n'), p.New...)
}

func appendHashes(dst []byte, hashes []tlog.Hash) []byte {
	for _, h := range hashes {
		dst = append(dst, h.String()...)
		dst = append(dst, '\n')
	}
	return append(dst, '\n')
}

// SplitProofs returns the proofs of a file that has several, one after another
// with an empty line between two.
func SplitProofs(data []byte) [][]byte {
	var list [][]byte
	begin := 0
	for from := 0; ; {
		i := bytes.Index(data[from:], []byte("\n\n"))
		if i < 0 {
			return append(list, data[begin:])
		}
		from += i + 2
		rest := data[from:]
		if bytes.HasPrefix(rest, []byte(inclusionHeader+"\n")) || bytes.HasPrefix(rest, []byte(consistencyHeader+"\n")) {
			list = append(list, data[begin:from-1])
			begin = from
		}
	}
}

// ParseInclusion reads the text of an inclusion proof.
func ParseInclusion(data []byte) (*Inclusion, error) {
	head, checkpoint, err := cutHead(data, inclusionHeader)
	if err != nil {
		return nil, err
	}
	p := &Inclusion{Checkpoint: []byte(checkpoint)}
	extra, ok := strings.CutPrefix(head[0], "extra ")
	if !ok {
		return nil, errors.New(`the second line must be "extra " and the record's line in base64`)
	}
	if len(extra) > maxRecord {
		return nil, fmt.Errorf("the record is larger than %d bytes", maxRecord)
	}
	if p.Record, err = base64.StdEncoding.Strict().DecodeString(extra); err != nil || strings.ContainsAny(extra, "\r\n") {
		return nil, errors.New("the second line is not in base64")
	}
	if len(head) < 2 || !strings.HasPrefix(head[1], "index ") {
		return nil, errors.New(`the third line must be "index " and the number of the leaf`)
	}
	if p.Index, ok = parseNumber(head[1][len("index "):]); !ok {
		return nil, fmt.Errorf("%q is no number of a leaf", head[1][len("index "):])
	}
	if p.Hashes, err = parseHashes(head[2:], 4); err != nil {
		return nil, err
	}
	_, err = parseCheckpoint(p.Checkpoint)
	return p, err
}

// ParseConsistency reads the text of a consistency proof.
func ParseConsistency(data []byte) (*Consistency, error) {
	head, rest, err := cutHead(data, consistencyHeader)
	if err != nil {
		return nil, err
	}
	p := &Consistency{}
	if len(head) == 1 && head[0] == "" { // no hashes
		head = nil
	}
	if p.Hashes, err = parseHashes(head, 2); err != nil {
		return nil, err
	}
	parts := strings.SplitAfterN(rest, "\n\n", 3) // text, signatures, the other note
	if len(parts) != 3 {
		return nil, errors.New("two checkpoints must follow the hashes, with an empty line between them")
	}
	p.Old, p.New = []byte(parts[0]+strings.TrimSuffix(parts[1], "\n")), []byte(parts[2])
	for _, text := range [][]byte{p.Old, p.New} {
		if _, err := parseCheckpoint(text); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// cutHead returns the lines between the first one and the first empty one, and
// what follows that.
func cutHead(data []byte, header string) (head []string, rest string, err error) {
	text, ok := strings.CutPrefix(string(data), header+"\n")
	if !ok {
		return nil, "", fmt.Errorf("its first line must be %s", header)
	}
	if rest, ok = strings.CutPrefix(text, "\n"); ok {
		return []string{""}, rest, nil
	}
	lines, rest, ok := strings.Cut(text, "\n\n")
	if !ok {
		return nil, "", errors.New("an empty line and a checkpoint must follow the hashes")
	}
	return strings.Split(lines, "\n"), rest, nil
}

// parseHashes reads lines, the first of which has a number.
func parseHashes(lines []string, first int) ([]tlog.Hash, error) {
	if len(lines) > maxHashes {
		return nil, fmt.Errorf("it has %d hashes; no proof has more than %d", len(lines), maxHashes)
	}
	var list []tlog.Hash
	for i, line := range lines {
		h, ok := parseHash(line)
		if !ok {
			return nil, fmt.Errorf("line %d is no hash: the base64 of 32 bytes", first+i)
		}
		list = append(list, h)
	}
	return list, nil
}
