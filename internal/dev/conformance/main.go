// Conformance writes docs/conformance.md: every row that the project promises,
// with the tests that hold it.
//
// The rows are docs/rows.tsv. A test holds a row when it would fail were the
// row broken, and says so on a line directly above the function:
//
//	//rlp:holds R7 R36
//
// A row that needs a platform which the project does not have, or that is not
// held as it is written, is in docs/unsupported.tsv instead, with the reason.
//
// A script of cmd/rlp/testdata/script says it with "# holds: R1 R2". An
// annotation that could be overlooked is refused: an unknown row, a row named
// twice, a line that stands above no test function or in a file that
// `go test` does not build.
//
//	go run ./internal/dev/conformance          writes the table
//	go run ./internal/dev/conformance -check   fails when the table is stale
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// errStale says that the table in the tree is not the one that the tests make.
var errStale = errors.New("docs/conformance.md is stale: run `make conformance`")

func main() {
	check := flag.Bool("check", false, "fail when docs/conformance.md is stale, write nothing")
	root := flag.String("root", ".", "the root of the repository")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// run writes the table of the repository at root, or with check compares it.
func run(root string, check bool) error {
	want, err := table(root)
	if err != nil {
		return err
	}
	path := filepath.Join(root, "docs", "conformance.md")
	have, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	switch {
	case bytes.Equal(have, want):
		return nil
	case check:
		return errStale
	default:
		return os.WriteFile(path, want, 0o644)
	}
}

// table renders the table of the repository at root.
func table(root string) ([]byte, error) {
	rows, err := readRows(filepath.Join(root, "docs", "rows.tsv"))
	if err != nil {
		return nil, err
	}
	held, err := scan(os.DirFS(root), rows)
	if err != nil {
		return nil, err
	}
	unsupported, err := readUnsupported(filepath.Join(root, "docs", "unsupported.tsv"), rows, held)
	if err != nil {
		return nil, err
	}
	return render(rows, held, unsupported), nil
}
