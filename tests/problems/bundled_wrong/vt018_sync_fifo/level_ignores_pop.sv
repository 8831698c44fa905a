// Wrong: a simultaneous push and pop raise the level.
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

  logic [7:0] memory [0:3];
  logic [1:0] head;
  logic [1:0] tail;

  assign empty = (level == 3'd0);
  assign full  = (level == 3'd4);
  assign dout  = empty ? 8'd0 : memory[head];

  wire do_pop  = pop && !empty;
  wire do_push = push && (!full || pop);

  always_ff @(posedge clk) begin
    if (reset) begin
      head <= 2'd0;
      tail <= 2'd0;
      level <= 3'd0;
      overflow <= 1'b0;
      underflow <= 1'b0;
    end else begin
      if (do_push) begin
        memory[tail] <= din;
        tail <= tail + 2'd1;
      end
      if (do_pop) head <= head + 2'd1;
      level <= do_push ? level + 3'd1 : do_pop ? level - 3'd1 : level;
      if (push && !do_push) overflow <= 1'b1;
      if (pop && !do_pop) underflow <= 1'b1;
    end
  end

endmodule
