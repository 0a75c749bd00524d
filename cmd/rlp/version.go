package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the release that this tree becomes.
const version = "0.1.0"

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of rlp", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return printVersion(a) },
	}
}

func printVersion(a *app) error {
	engine := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == "github.com/tetratelabs/wazero" {
				engine = d.Version
			}
		}
	}
	if a.json {
		return a.printJSON(map[string]string{
			"version": version, "go": runtime.Version(), "wazero": engine, "platform": runtime.GOOS + "/" + runtime.GOARCH,
		})
	}
	_, err := fmt.Fprintf(a.stdout, "rlp %s (%s, wazero %s, %s/%s)\n", version, runtime.Version(), engine, runtime.GOOS,
		runtime.GOARCH)
	return err
}
