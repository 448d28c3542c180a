// Package fuzz holds black-box fuzz targets with their corpora: bytes into a whole
// switch, by way of its ports and its underlay. Decoders and tables have targets of
// their own, beside the code.
//
//	go test ./fuzz -fuzz FuzzSwitch -fuzztime 1h
package fuzz
