// Package docs reads the project's pages, which are Markdown, for tests that do what
// a reader does: paste each block.
//
// The first word after a fence says what is in it, and a second one, which no reader
// sees, where it belongs:
//
//	```sh HOST       commands, run one block after the other by a shell of that host
//	```text HOST     what the commands before have printed, or will soon
//	```console HOST  both: lines that begin with "$ ", and below each what it prints
//	```go            a program, or a piece of one: it compiles
//	```json FILE     a configuration: it is right, and is written to the file for the commands
//	```              a drawing
//
// In an output "..." stands for anything, and MACs, times and durations for any other.
// A page's hosts are those that it names; one whose blocks name none has one host. The
// package's own tests run all pages, each in network namespaces of its own; pages.go
// there says what a page takes for granted, and what is not run, with the reason.
package docs
