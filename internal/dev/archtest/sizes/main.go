// Sizes prints how large each package is beside the figures of projects that
// are known to be easy to work in.
//
//	go run ./internal/dev/archtest/sizes       prints the table
//	go run ./internal/dev/archtest/sizes -w    writes it into ARCHITECTURE.md
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"runloop.dev/rlp/internal/dev/archtest"
)

func main() {
	write := flag.Bool("w", false, "write the table into ARCHITECTURE.md")
	root := flag.String("root", ".", "the root of the repository")
	flag.Parse()
	if err := run(*root, *write); err != nil {
		fmt.Fprintln(os.Stderr, "sizes:", err)
		os.Exit(1)
	}
}

// run prints the table of the repository at root, or writes it into its page.
func run(root string, write bool) error {
	table, err := archtest.Sizes(os.DirFS(root))
	if err != nil || !write {
		fmt.Print(table)
		return err
	}
	name := filepath.Join(root, "ARCHITECTURE.md")
	page, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	text, err := archtest.WithSizes(string(page), table)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(name, []byte(text), 0o644)
}
