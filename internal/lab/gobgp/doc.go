// Package gobgp runs gobgpd in hosts of package netns.
package gobgp
