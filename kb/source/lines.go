package source

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"
)

// readLines reads a JSONL file: one JSON object a line, whose key is its "id",
// or a digest of it when it has none.
func readLines(ctx context.Context, f *os.File, o Options, visit func(Document) error) error {
	name := filepath.Base(f.Name())
	in := stoppable{ctx, f}
	if err := eachLine(in, name, o, func(Document) error { return nil }); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	return eachLine(in, name, o, func(d Document) error {
		if err := ctx.Err(); err != nil { // what was read is more than one line
			return err
		}
		return visit(d)
	})
}

// eachLine gives the document of each line to visit; blank lines are none.
func eachLine(r io.Reader, name string, o Options, visit func(Document) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, MaxDocument+2)
	seen := map[string]int{}
	n := 0
	for lines.Scan() {
		n++
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		d, err := parseLine(text)
		if err == nil {
			d.Key = o.Prefix + d.Key
			err = wrongKey(d.Key)
		}
		if before := seen[d.Key]; err == nil && before != 0 {
			err = fmt.Errorf("id: line %d has it already", before)
		}
		if err != nil {
			return fmt.Errorf("%w: %s:%d: %w", ErrInput, name, n, err)
		}
		if len(seen) >= MaxCount {
			return fmt.Errorf("%w: %s has more than %d lines", ErrInput, name, MaxCount)
		}
		seen[d.Key] = n
		d.Source = "import:" + name
		if err := visit(d); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("%w: %s:%d: the line is longer than 1 MiB", ErrInput, name, n+1)
	}
	if err := lines.Err(); errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if lines.Err() != nil {
		return fmt.Errorf("%w: %w", ErrInput, lines.Err())
	}
	return nil
}

func wrongKey(key string) error {
	if why := badKey(key); why != "" {
		return fmt.Errorf("id: %s", why)
	}
	return nil
}

// parseLine reads one document. Only "id" and "meta.etag", spelled so and given
// once, mean anything here; the rest is the value's own.
func parseLine(text []byte) (Document, error) {
	if text[0] != '{' || !utf8.Valid(text) || !json.Valid(text) {
		return Document{}, errors.New("not a JSON object in UTF-8")
	}
	if len(text) > MaxDocument {
		return Document{}, errors.New("the line is longer than 1 MiB")
	}
	d := Document{Value: bytes.Clone(text), ETag: digest(text)}
	id, meta, err := member(text, "id", "meta")
	if err != nil {
		return d, err
	}
	d.Key = d.ETag
	if id != nil {
		if d.Key, err = textOf(id); err != nil {
			return d, fmt.Errorf("id: %w", err)
		}
	}
	if len(meta) == 0 || meta[0] != '{' {
		return d, nil
	}
	etag, _, err := member(meta, "etag", "")
	if err != nil {
		return d, fmt.Errorf("meta.%w", err)
	}
	if etag == nil || string(etag) == "null" {
		return d, nil
	}
	tag, err := textOf(etag)
	if err == nil && (tag == "" || len(tag) > MaxETag) {
		err = fmt.Errorf("1 to %d bytes are wanted", MaxETag)
	}
	if err != nil {
		return d, fmt.Errorf("meta.etag: %w", err)
	}
	d.ETag = "etag:" + tag
	return d, nil
}

// member finds two members of a valid JSON object; nil: it is not there.
func member(object []byte, a, b string) (first, second json.RawMessage, err error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return nil, nil, err
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, nil, err
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, nil, err
		}
		for name, into := range map[string]*json.RawMessage{a: &first, b: &second} {
			if name == "" || t != any(name) {
				continue
			}
			if *into != nil {
				return nil, nil, fmt.Errorf("%s: given twice", name)
			}
			*into = v
		}
	}
	return first, second, nil
}

func textOf(raw json.RawMessage) (string, error) {
	if raw[0] != '"' {
		return "", errors.New("a text is wanted")
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err
}
