package home

import "path/filepath"

// Pins is where the tenant keeps what servers of tools said of themselves, a
// file each. A tenant has its own: what a server says may depend on whose token
// asks it.
func (h Home) Pins() string { return filepath.Join(h.Root(), "caps", "mcp") }
