package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"

	"github.com/dgraph-io/badger/v4"
	"github.com/rogpeppe/go-internal/testscript"
)

// witnessServer starts a server on loopback that appends what is posted to /take
// to the file "witnessed", refuses while there is a file "down", and redirects
// /away; it puts its address for $WITNESS in files.
func witnessServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: witness FILE...")
	}
	out, down := ts.MkAbs("witnessed"), ts.MkAbs("down")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat(down); err == nil {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "/take", http.StatusTemporaryRedirect)
			return
		}
		body, err := io.ReadAll(r.Body)
		f, openErr := os.OpenFile(out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil || openErr != nil || r.Method != http.MethodPost {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		defer f.Close()
		_, _ = f.Write(append(body, '\n'))
	}))
	ts.Defer(s.Close)
	ts.Setenv("WITNESS", s.Listener.Addr().String())
	for _, name := range args {
		text, err := os.ReadFile(ts.MkAbs(name))
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(name), bytes.ReplaceAll(text, []byte("$WITNESS"), []byte(ts.Getenv("WITNESS"))),
			0o600))
	}
}

// tamper is root with a program of their own: tamper DIR SEQ OLD NEW changes
// what record SEQ of the database in DIR says; tamper DIR SEQ removes it, and
// tamper DIR SEQ = OTHER puts the record OTHER there; tamper DIR checkpoints removes
// all of these, tamper DIR state flips a byte of how far a journal was taken in. It is a process of its own, so that
// nobody who is started meanwhile inherits the
// database's lock.
func tamper(args []string) error {
	if len(args) != 2 && len(args) != 4 {
		return errors.New("usage: tamper DIR SEQ [OLD NEW]")
	}
	if args[1] == "checkpoints" {
		return tamperAll(args[0], 'C', func(txn *badger.Txn, key, _ []byte) error { return txn.Delete(key) })
	}
	if args[1] == "state" {
		return tamperAll(args[0], 'j', func(txn *badger.Txn, key, p []byte) error {
			p[len(p)/2] ^= 1
			return txn.Set(key, p)
		})
	}
	seq, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return err
	}
	db, err := badger.Open(badger.DefaultOptions(args[0]).WithLogger(nil))
	if err != nil {
		return err
	}
	key := binary.BigEndian.AppendUint64([]byte{'a'}, seq)
	err = db.Update(func(txn *badger.Txn) error {
		from := key
		if len(args) == 4 && args[2] == "=" {
			other, err := strconv.ParseUint(args[3], 10, 64)
			if err != nil {
				return err
			}
			from = binary.BigEndian.AppendUint64([]byte{'a'}, other)
		}
		item, err := txn.Get(from)
		if err != nil {
			return err
		}
		p, err := item.ValueCopy(nil)
		switch {
		case err != nil:
			return err
		case len(args) == 2:
			return txn.Delete(key)
		case args[2] == "=":
			return txn.Set(key, p)
		case !bytes.Contains(p, []byte(args[2])):
			return fmt.Errorf("record %d does not say %s", seq, args[2])
		}
		return txn.Set(key, bytes.Replace(p, []byte(args[2]), []byte(args[3]), 1))
	})
	return errors.Join(err, db.Close())
}

// tamperAll changes what a space of the database in dir has.
func tamperAll(dir string, space byte, change func(txn *badger.Txn, key, p []byte) error) error {
	db, err := badger.Open(badger.DefaultOptions(dir).WithLogger(nil))
	if err != nil {
		return err
	}
	err = db.Update(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{space}})
		found := map[string][]byte{}
		for it.Rewind(); it.Valid(); it.Next() {
			p, err := it.Item().ValueCopy(nil)
			if err != nil {
				return err
			}
			found[string(it.Item().Key())] = p
		}
		it.Close()
		for key, p := range found {
			if err := change(txn, []byte(key), p); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, db.Close())
}
