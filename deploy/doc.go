// Package deploy holds what runs Foldline on machines: an image, a compose file, units, alert rules and a dashboard.
// It has no code; its test holds the names in those files against the code.
package deploy
