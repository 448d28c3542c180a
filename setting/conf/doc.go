// Package conf reads settings from a file, and writes them: structs with json tags, as the Configs
// of the library are and whatever embeds them.
//
// A file is JSON with comments, and a comma after the last of a list or object. [Read] fills a
// struct; what is wrong is in a [Report] by then, and [Report.Ask] and [Report.Fail] add what the
// packages and the reader's own program say. [Report.Err] is all of it, each with its place:
//
//	12:7: segments[0].flood[1]: 10.0.0.1 is there twice
//
// The name of an entry of a map that is more than a word is quoted in a key: sets["10.0/8"]. It has
// up to 255 bytes.
//
// A setting is an exported field with a key in its json tag: a string, a number, true or false, a
// struct, what reads and writes itself as JSON or as text, or pointers to, lists, arrays and maps of
// such, by strings or by what is text. A struct that is embedded without a key is part of the one around
// it, but for a pointer to a type that is not exported. A file that says something of a field of another
// type, such as any, is wrong.
//
// A duration is a string, such as "300s". In a field with the tag zero:"never" 0s stands for never,
// which in Go is a negative duration; the key is left out for the default.
package conf
