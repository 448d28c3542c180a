// Package bird runs BIRD in hosts of package netns.
package bird
