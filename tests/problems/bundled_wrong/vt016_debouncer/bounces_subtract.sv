// Wrong: a bounce takes one off the count instead of clearing it.
module TopModule (
  input  logic clk,
  input  logic reset,
  input  logic in,
  output logic out,
  output logic changed
);

  logic [1:0] run;

  always_ff @(posedge clk) begin
    changed <= 1'b0;
    if (reset) begin
      out <= 1'b0;
      run <= 2'd0;
    end else if (in == out) begin
      run <= (run == 0) ? 2'd0 : run - 2'd1;
    end else if (run == 2'd3) begin
      out <= in;
      changed <= 1'b1;
      run <= 2'd0;
    end else begin
      run <= run + 2'd1;
    end
  end

endmodule
