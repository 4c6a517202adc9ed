-- msp-bridge in Neovim (0.7 and newer) as a language server: mutants that no test kills, as diagnostics.
-- For every project: save this as ~/.config/nvim/plugin/msp-bridge-lsp.lua. A save tests the lines that you changed;
-- vim.lsp.buf.code_action() offers to test more. To see the code lenses: vim.lsp.codelens.refresh()

local command = { "msp-bridge", "serve", "stdio", "--dialect", "lsp" }
local filetypes = {
  "python", "javascript", "javascriptreact", "typescript", "typescriptreact", "vue", "svelte", "cs", "rust",
  "go", "java", "kotlin",
}
local markers = { "msp-bridge.toml", ".git", "pyproject.toml", "package.json", "Cargo.toml", "go.mod", "pom.xml" }
local settings = { testOnSave = "changed" } -- or "file", "off"

if vim.lsp.config then -- 0.11
  vim.lsp.config("msp-bridge", {
    cmd = command, filetypes = filetypes, root_markers = markers, init_options = settings,
  })
  vim.lsp.enable("msp-bridge")
  return
end

local clients = {} -- by root

local function root_of(file)
  local from = vim.fn.fnamemodify(file, ":p:h")
  for _, name in ipairs(markers) do
    local mark = vim.fn.findfile(name, from .. ";")
    mark = mark ~= "" and mark or vim.fn.finddir(name, from .. ";")
    if mark ~= "" then
      return (vim.fn.fnamemodify(mark, ":p"):gsub("/$", ""):match("^(.*)/[^/]*$"))
    end
  end
end

vim.api.nvim_create_autocmd("FileType", {
  pattern = filetypes,
  callback = function(event)
    local root = root_of(event.file)
    if root == nil then
      return
    end
    if clients[root] == nil or vim.lsp.get_client_by_id(clients[root]) == nil then
      clients[root] = vim.lsp.start_client({
        name = "msp-bridge", cmd = command, cmd_cwd = root, root_dir = root, init_options = settings,
      })
    end
    vim.lsp.buf_attach_client(event.buf, clients[root])
  end,
})
