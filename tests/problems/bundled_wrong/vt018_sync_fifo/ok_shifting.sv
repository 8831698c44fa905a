// Right: the bytes move down towards the exit.
module TopModule (
  input  logic       clk,
  input  logic       reset,
  input  logic       push,
  input  logic [7:0] din,
  input  logic       pop,
  output logic [7:0] dout,
  output logic       empty,
  output logic       full,
  output logic [2:0] level,
  output logic       overflow,
  output logic       underflow
);

  reg [31:0] store;
  reg [31:0] next_store;
  reg [2:0]  next_level;
  wire       out_ok = pop & (level != 0);
  wire       in_ok = push & ((level != 4) | pop);

  assign empty = ~|level;
  assign full = level[2];
  assign dout = store[7:0] & {8{~empty}};

  always @* begin
    next_store = out_ok ? {8'd0, store[31:8]} : store;
    next_level = level - out_ok;
    if (in_ok) begin
      next_store[8 * next_level +: 8] = din;
      next_level = next_level + 1;
    end
  end

  always @(posedge clk) begin
    store <= next_store;
    level <= reset ? 3'd0 : next_level;
    overflow <= ~reset & (overflow | (push & ~in_ok));
    underflow <= ~reset & (underflow | (pop & ~out_ok));
  end

endmodule
