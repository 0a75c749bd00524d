package home

import "path/filepath"

// Pins is where the tenant keeps what servers of tools said of themselves, a
// file each. A tenant has its own: what a server says may depend on whose token
// asks it.
func (h Home) Pins() string { return filepath.Join(h.Root(), "caps", "mcp") }

// Servers is where the tenant keeps what servers of its clients may have, a file
// each, and what those clients' settings were.
func (h Home) Servers() string { return filepath.Join(h.Root(), "caps", "servers") }

// Adopted is the file with the paths, one a line, of clients' settings by which they
// start their servers through rlp.
func (h Home) Adopted() string { return filepath.Join(h.Servers(), "adopted") }
