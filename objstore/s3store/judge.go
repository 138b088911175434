package s3store

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/retry"
)

// judge tells what is known after a request that ended in err.
func judge(err error) (retry.Verdict, error) {
	status := 0
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		status = response.HTTPStatusCode()
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		return retry.ByStatus(status, err)
	}
	switch code := api.ErrorCode(); code {
	case "ConditionalRequestConflict", "OperationAborted": // two puts met, and this one did nothing
		return retry.Untouched, fmt.Errorf("%w: %w", objstore.ErrBusy, err)
	case "NoSuchUpload": // a repeat of a completion finds the upload gone
		return retry.Unknown, err
	case "RequestTimeout":
		return retry.Unknown, fmt.Errorf("%w: %w", objstore.ErrBusy, err)
	case "EntityTooLarge":
		return retry.Definite, fmt.Errorf("%w: %w", objstore.ErrTooLarge, err)
	case "NoSuchKey":
		return retry.Definite, fmt.Errorf("%w: %w", objstore.ErrNotFound, err)
	default:
		if status == http.StatusNotFound && code != "NotFound" { // no such bucket: nothing an object's absence
			return retry.Definite, err
		}
		return retry.ByStatus(status, err)
	}
}
