package sandbox

import (
	"fmt"
	"os"
	"testing"
)

// The tests' own program tries what a thread could do that Landlock binds, and one
// that it does not.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 {
		switch os.Args[1] {
		case "reach-landlocked":
			fmt.Println(landlocked(os.Args[2]))
			os.Exit(0)
		case "reach-free":
			fmt.Println(plain(os.Args[2]))
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}
