"""The HTTP API and the memory panel: a reader of files and journal beside the daemon. docs/api.md.

What it may answer is decided in `gate` (who may ask) and in one module for each kind of question: `reading`, `posting`,
`feed`, `metrics`. `app` puts them together, `server` runs them. The only importer of starlette and uvicorn; needs the
extra `api`.
"""
