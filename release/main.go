// Release makes what users install: static programs for Linux on amd64 and arm64, in tarballs, Debian packages and a
// container image, with their checksums. "make release" runs it.
//
//	go run -C release . -out ../dist
//
// The version is what the programs' build information says: the tag cmd/v1.2.3 makes it 1.2.3. Two builds of one commit
// with one version of Go are equal, byte for byte.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	source := flag.String("source", "..", "the repository")
	out := flag.String("out", "../dist", "folder for the files; what it has of an earlier release goes")
	flag.Parse()
	names, err := release(*source, *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
	fmt.Println(strings.Join(names, "\n"))
}
