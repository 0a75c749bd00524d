package source

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"runloop.dev/rlp/internal/base/strictjson"
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
			return fmt.Errorf("%w: %s:%d: %w", ErrInput, name, n, ofFile(n, err))
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

// parseLine reads one document. Only "id" and "meta.etag", spelled so, mean anything
// here; the rest is the value's own.
func parseLine(text []byte) (Document, error) {
	if len(text) > MaxDocument {
		return Document{}, errors.New("the line is longer than 1 MiB")
	}
	d := Document{Value: bytes.Clone(text), ETag: digest(text)}
	d.Key = d.ETag
	err := strictjson.Object(string(text), func(r *strictjson.Reader, key string) (err error) {
		switch key {
		case "id":
			d.Key, err = r.Text()
		case "meta":
			err = d.meta(r)
		default:
			err = r.Any()
		}
		return err
	})
	return d, err
}

// ofFile gives an error the line of the file that it is in.
func ofFile(line int, err error) error {
	if at := (*strictjson.Error)(nil); errors.As(err, &at) {
		at.Line = line
	}
	return err
}

// meta reads what a document says of itself; one that is no object says nothing.
func (d *Document) meta(r *strictjson.Reader) error {
	if r.Kind() != '{' {
		return r.Any()
	}
	return r.Members(func(r *strictjson.Reader, key string) error {
		if key != "etag" {
			return r.Any()
		}
		if r.Null() {
			return nil
		}
		tag, err := r.Text()
		if err == nil && (tag == "" || len(tag) > MaxETag) {
			err = fmt.Errorf("1 to %d bytes are wanted", MaxETag)
		}
		d.ETag = "etag:" + tag
		return err
	})
}
