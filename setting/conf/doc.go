// Package conf reads settings from a file and writes them: the Configs of the library, and structs that
// embed them.
//
// A file is JSON with comments and trailing commas. [Read] fills a struct and returns a [Report] of the errors
// in the file. [Report.Ask] adds the errors of the Check methods of other packages, [Report.Want] and
// [Report.Fail] those of the program itself. [Report.Err] returns all errors with their positions:
//
//	12:7: segments[0].flood[1]: "10.0.0": must be an IP address such as 10.0.0.1
//
// A setting is an exported field with a key in its json tag. It can be a string, an integer, a bool, a struct, a
// type that implements [encoding/json.Unmarshaler] or [encoding.TextUnmarshaler], or pointers to, slices of and
// maps from strings to such. Fields of a struct that is embedded without a key belong to the outer struct. A
// file cannot set fields of other types.
//
// A duration is a string such as "300s". In a field with the tag zero:"never", "0s" in the file is a negative
// duration in Go and means never; without the key, the field is 0 and means the default.
//
// A key quotes the names of a map that are not plain words: sets["10.0/8"]. Names have at most 255 bytes.
package conf
